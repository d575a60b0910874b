"""Fakes shared by the tests: small working stand-ins, never mocks."""
