"""Marked blocks are found with their place, and a console block's output is never taken for a command."""

from pathlib import Path

import pytest

from tests.docs import blocks

PAGE = """# A page

```console
$ not marked
```

<!-- file a.py -->
```python
x = 1
```

<!-- run needs=docker,vllm exit=3 -->
```console
$ first one
its output
$ second \\
>   --flag
$ third
```
"""


@pytest.fixture
def found(tmp_path: Path) -> list:
    (tmp_path / "page.md").write_text(PAGE)
    return list(blocks.marked_blocks(tmp_path / "page.md"))


def test_only_marked_blocks_are_found(found: list) -> None:
    assert [(block.verb, block.line) for block in found] == [("file", 9), ("run", 14)]


def test_output_is_not_a_command_and_continued_lines_are_one(found: list) -> None:
    assert [command.text for command in found[1].commands()] == ["first one", "second \\\n  --flag", "third"]


def test_what_is_shown_below_a_command_is_its_output(found: list) -> None:
    assert [command.printed for command in found[1].commands()] == [("its output",), (), ()]


def test_needs_and_status_are_read_from_the_mark(found: list) -> None:
    assert (found[1].needs, found[1].status) == (("docker", "vllm"), 3)
    assert (found[0].needs, found[0].status) == ((), 0)


def test_a_file_block_keeps_its_text(found: list) -> None:
    assert (found[0].rest, found[0].text) == ("a.py", "x = 1\n")


def test_a_mark_without_a_block_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("<!-- run -->\nno fence\n")
    with pytest.raises(ValueError, match=r"page\.md:1"):
        list(blocks.marked_blocks(tmp_path / "page.md"))
