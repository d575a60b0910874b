"""What is pruned: what is too old, then what is over the budget, never what is or was just used."""

import os
import time
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import given
from hypothesis import strategies as st

from envsdk.errors import SandboxError
from envsdk.sandboxes import pruning
from envsdk.sandboxes.bubblewrap_store import Store, TreeImage
from envsdk.sandboxes.owner import LEASE_S
from envsdk.sandboxes.pruning import BuiltImage, bubblewrap_images, choose, prune, remove_bubblewrap

DAY_S = 86_400.0
NOW = 1000 * DAY_S
images = st.lists(
    st.builds(
        BuiltImage,
        back_end=st.just("docker"),
        name=st.uuids().map(str),
        size_mib=st.floats(0, 1000),
        used_at=st.floats(NOW - 100 * DAY_S, NOW),
    )
)


@given(images, st.floats(1, 200), st.none() | st.floats(0, 3000))
def test_the_oldest_go_first_and_the_just_used_never(
    found: list[BuiltImage], days: float, budget_mib: float | None
) -> None:
    chosen = choose(found, now=NOW, max_age_s=days * DAY_S, budget_mib=budget_mib)
    kept = [image for image in found if image not in chosen]
    assert all(NOW - image.used_at > LEASE_S for image in chosen)
    assert all(NOW - image.used_at <= days * DAY_S for image in kept)
    assert max((image.used_at for image in chosen), default=0.0) <= min((i.used_at for i in kept), default=NOW)


@given(images, st.floats(0, 3000))
def test_the_rest_fits_the_budget_or_was_just_used(found: list[BuiltImage], budget_mib: float) -> None:
    chosen = choose(found, now=NOW, budget_mib=budget_mib)
    kept = [image for image in found if image not in chosen]
    old = [image for image in kept if NOW - image.used_at > LEASE_S]
    assert sum(image.size_mib for image in kept) <= budget_mib + 1e-6 or not old


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def build(store: Store, name: str, *layers: str, unused_s: float = 0.0) -> TreeImage:
    for layer in layers:
        store.layer(layer).mkdir(exist_ok=True)
    image = store.save(TreeImage(id=name, layers=layers))
    when = time.time() - unused_s
    os.utime(store.root / "images" / f"{name}.json", (when, when))
    return image


def test_only_images_with_a_layer_of_their_own_are_listed(store: Store) -> None:
    build(store, "base", "r1")
    build(store, "built", "r1", "i1", unused_s=50)
    (found,) = bubblewrap_images(store)
    assert (found.name, round(time.time() - found.used_at)) == ("built", 50)


def test_using_an_image_makes_it_young_again(store: Store) -> None:
    image = build(store, "built", "r1", "i1", unused_s=90 * DAY_S)
    assert store.note_use(image)
    (found,) = bubblewrap_images(store)
    assert time.time() - found.used_at < 60


def test_an_image_pruned_by_another_process_is_noticed_at_its_next_use(store: Store) -> None:
    image = build(store, "built", "r1", "i1")
    remove_bubblewrap(Store(store.root), ["built"])
    assert not store.note_use(image)
    assert store.image(image.reference) is None


def test_layers_go_with_their_last_image_and_never_from_under_a_sandbox(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "LEASE_S", -1.0)
    build(store, "one", "r1", "i1")
    build(store, "over", "r1", "i1", "i2")
    build(store, "running", "r1", "i3")
    box = store.root / "boxes" / "somebody" / "b1"
    box.mkdir(parents=True)
    (box / "layers").write_text("r1 i3")
    assert remove_bubblewrap(store, ["one", "running"]) == ["one", "running"]
    assert {path.name for path in (store.root / "l").iterdir()} == {"r1", "i1", "i2", "i3"}
    remove_bubblewrap(store, ["over"])
    assert {path.name for path in (store.root / "l").iterdir()} == {"r1", "i3"}


def test_a_layer_that_is_about_to_be_named_stays(store: Store) -> None:
    store.layer("i9").mkdir()
    remove_bubblewrap(store, [])
    assert store.layer("i9").is_dir()


async def test_one_pruning_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVSDK_HOME", str(tmp_path))
    (tmp_path / "images").mkdir()
    with FileLock(tmp_path / "images" / "prune.lock"), pytest.raises(SandboxError) as caught:
        await prune()
    assert caught.value.code == "prune_busy"


async def test_a_trial_removes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVSDK_HOME", str(tmp_path))
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    store = Store()
    build(store, "built", "r1", "i1", unused_s=90 * DAY_S)
    assert [image.name for image in await prune(is_trial=True)] == ["built"]
    assert [image.name for image in await prune()] == ["built"]
    assert await prune() == []
