import os
import time
from pathlib import Path

import pytest

from envsdk.errors import SandboxError
from envsdk.sandboxes.bubblewrap_box import snapshot_name
from envsdk.sandboxes.bubblewrap_store import MAX_LAYERS, Store, TreeImage
from envsdk.sandboxes.owner import LEASE_S, place_tag, this_owner, this_place
from envsdk.sandboxes.reaper import reap_bubblewrap, snapshot_owner


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_an_image_is_found_again_by_its_reference(store: Store) -> None:
    image = store.save(TreeImage(id="abc", layers=("r1", "i2"), env={"A": "1"}, command=("x",)))
    assert Store(store.root).image(image.reference) == image


@pytest.mark.parametrize("reference", ["abc", "bubblewrap:none", "sha256:abc", ""])
def test_other_references_are_no_image_of_ours(store: Store, reference: str) -> None:
    assert store.image(reference) is None


def test_layers_are_stacked_topmost_first(store: Store) -> None:
    assert store.options(("r1", "i2", "s3")) == "lowerdir=l/s3:l/i2:l/r1"


def test_a_full_stack_of_snapshots_fits_in_one_page_of_options(store: Store) -> None:
    names = ("r" + "0" * 16, *(snapshot_name() for _ in range(MAX_LAYERS - 1)))
    assert len(store.options(names)) < 4096 - 600


def test_too_many_layers_are_refused_with_a_way_out(store: Store) -> None:
    with pytest.raises(SandboxError) as caught:
        store.options(("x",) * (MAX_LAYERS + 1))
    assert caught.value.code == "too_many_layers"
    assert caught.value.hint


def test_a_frozen_folder_is_a_layer_and_no_folder_any_more(store: Store, tmp_path: Path) -> None:
    upper = tmp_path / "u"
    upper.mkdir()
    (upper / "x").write_text("1")
    store.freeze(upper, "i1")
    assert not upper.exists()
    assert (store.layer("i1") / "x").read_text() == "1"
    store.drop_layer("i1")
    assert not store.layer("i1").exists()


def test_a_layer_may_lie_elsewhere_and_move(store: Store, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        store.link_layer("r1", tmp_path / name)
    assert store.layer("r1").resolve() == tmp_path / "two"


def test_a_snapshots_name_tells_its_owner() -> None:
    owner = this_owner()
    tag, pid, started = snapshot_owner(snapshot_name())
    assert (pid, started) == (owner.pid, owner.started)
    assert tag == place_tag(this_place())


def test_the_reaper_removes_the_deads_and_leaves_the_livings(store: Store) -> None:
    place = this_place()
    mine = store.boxes() / "b1"
    mine.mkdir()
    dead = store.root / "boxes" / f"{place}.{2**22 + 1}.5" / "b2"
    dead.mkdir(parents=True)
    for name, age_s in (("old", 2 * LEASE_S), ("elsewhere", 0.0)):
        folder = store.root / "boxes" / f"{name}.1.1"
        folder.mkdir()
        os.utime(folder, (time.time() - age_s,) * 2)
    (store.root / "boxes" / "something else").mkdir()
    for name in (snapshot_name(), f"s{place_tag(place)}-{2**22 + 1}-5-aa", "i0123", "r0123"):
        store.layer(name).mkdir()
    reap_bubblewrap(store.root)
    assert mine.is_dir()
    assert {path.name for path in (store.root / "boxes").iterdir()} == {
        str(this_owner()),
        "something else",
        "elsewhere.1.1",
    }
    left = {path.name for path in (store.root / "l").iterdir()}
    assert {name[0] for name in left} == {"s", "i", "r"}
    assert len(left) == 3


def test_reaping_a_store_that_is_not_there_finds_nothing(tmp_path: Path) -> None:
    assert reap_bubblewrap(tmp_path / "none") == []
