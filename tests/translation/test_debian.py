"""The corpus builder, on an unpacked tree made here: catalogues, help pages, licences."""

import pytest

from anyfill.cli.main import run
from anyfill.translation.debian import build, paragraphs

from .test_reading import write_mo


def test_a_tree_becomes_pairs_and_licences(tmp_path):
    tree = tmp_path / "root"
    catalogue = tree / "tool" / "usr/share/locale/de/LC_MESSAGES"
    catalogue.mkdir(parents=True)
    write_mo(catalogue / "tool.mo", {"Open the _file": "Die _Datei öffnen", "same": "same", "%s is bad": "schlecht"})
    twice = tree / "zweites" / "usr/share/locale/de/LC_MESSAGES"
    twice.mkdir(parents=True)
    write_mo(twice / "z.mo", {"Open the _file": "Die _Datei öffnen", "Open <b>%s</b> now": "Jetzt <b>%s</b> öffnen"})
    (tree / "tool/usr/share/locale/fr/LC_MESSAGES").mkdir(parents=True)
    write_mo(tree / "tool/usr/share/locale/fr/LC_MESSAGES/tool.mo", {"Open the _file": "Ouvrir le fichier"})
    (catalogue / "broken.mo").write_bytes(b"rubbish")
    legal = tree / "tool/usr/share/doc/tool"
    legal.mkdir(parents=True)
    (legal / "copyright").write_text("Files: *\nLicense: GPL-3+\n\nLicense: MPL-2.0\n text\n", "utf-8")
    for name, language, text in (
        ("libreoffice-help-en-us", "en-US", "The red house"),
        ("libreoffice-help-de", "de", "Das rote Haus"),
    ):
        page = tree / name / f"usr/share/help/{language}/text/a.html"
        page.parent.mkdir(parents=True)
        (tree / name / "usr/share/doc").mkdir(parents=True, exist_ok=True)
        (tree / name / "usr/share/doc" / name).symlink_to("libreoffice-common")
        page.write_text(f'<html><p id="par1">{text} <b>here</b></p><p>no id</p><h1 id="h">x</h1></html>', "utf-8")
    made = build(tmp_path / "out", "de", (), root=tree)
    lines = [line.split("\t") for line in (tmp_path / "out/pairs.tsv").read_text("utf-8").splitlines()]
    assert ["Open the file", "Die Datei öffnen", "tool"] in lines
    assert ["The red house here", "Das rote Haus here", "libreoffice-help-de"] in lines
    assert ["Open <b>%s</b> now", "Jetzt <b>%s</b> öffnen", "zweites"] in lines  # spelt out, to be read again
    assert len(lines) == made.counts.kept == 3
    assert made.counts.dropped["seen before"] == 1  # in another package
    licences = (tmp_path / "out/licences.tsv").read_text("utf-8")
    assert "GPL-3+; MPL-2.0" in licences
    assert "libreoffice-help-de\t1\tnone\tthose of libreoffice-common\n" in licences
    with pytest.raises(ValueError, match="a new folder"):
        build(tmp_path / "out", "de", (), root=tree)


def unpacked(tree, name, licence, pairs):
    """A package in a tree: one catalogue and its copyright file."""
    catalogue, legal = tree / "usr/share/locale/de/LC_MESSAGES", tree / "usr/share/doc" / name
    catalogue.mkdir(parents=True, exist_ok=True)
    legal.mkdir(parents=True)
    write_mo(catalogue / f"{name}.mo", pairs)
    (legal / "copyright").write_text(f"License: {licence}\n", "utf-8")


def written(folder):
    """The packages of pairs.tsv, and the lines of licences.tsv as (package, pairs, licences)."""
    pairs = [line.split("\t")[2] for line in (folder / "pairs.tsv").read_text("utf-8").splitlines()]
    lines = [line.split("\t") for line in (folder / "licences.tsv").read_text("utf-8").splitlines()]
    return pairs, [(name, count, licences) for name, count, _, licences in lines]


def test_one_tree_is_the_package_that_it_documents_and_not_usr(tmp_path):
    tree = tmp_path / "tree"
    unpacked(tree, "tool", "GPL-3+", {"Open the file": "Die Datei öffnen"})
    (tree / "etc").mkdir()
    build(tmp_path / "one", "de", (), root=tree)
    assert written(tmp_path / "one") == (["tool"], [("tool", "1", "GPL-3+")])
    unpacked(tree, "other", "MIT", {"Close the file": "Die Datei schließen"})
    build(tmp_path / "two", "de", (), root=tree)
    assert written(tmp_path / "two") == (["tree", "tree"], [("tree", "2", "MIT; GPL-3+")])
    lists = tree / "var/lib/dpkg/info"
    lists.mkdir(parents=True)
    for name in ("tool:amd64", "other"):
        file = f"/usr/share/locale/de/LC_MESSAGES/{name.partition(':')[0]}.mo"
        (lists / f"{name}.list").write_text(f"/.\n/usr\n{file}\n", "utf-8")
    build(tmp_path / "three", "de", (), root=tree)
    assert written(tmp_path / "three") == (["other", "tool"], [("other", "1", "MIT"), ("tool", "1", "GPL-3+")])


def test_the_help_of_an_installed_tree_is_of_the_package_that_dpkg_says(tmp_path):
    tree = tmp_path / "de"
    unpacked(tree, "tool", "GPL-3+", {"Open the file": "Die Datei öffnen"})
    lists = tree / "var/lib/dpkg/info"
    lists.mkdir(parents=True)
    (lists / "tool.list").write_text("/usr/share/locale/de/LC_MESSAGES/tool.mo\n", "utf-8")
    for name, language, text in (
        ("libreoffice-help-en-us", "en-US", "The red house"),
        ("libreoffice-help-de", "de", "Das rote Haus"),
    ):
        file = f"usr/share/libreoffice/help/{language}/text/a.html"
        (tree / file).parent.mkdir(parents=True)
        (tree / file).write_text(f'<p id="par1">{text}</p>', "utf-8")
        (lists / f"{name}.list").write_text(f"/{file}\n", "utf-8")
        (tree / "usr/share/doc" / name).mkdir()
        (tree / "usr/share/doc" / name / "copyright").write_text("License: MPL-2.0\n", "utf-8")
    elsewhere = tree / "usr/share/doc/tool/de/text/a.html"  # a page of the same name in another place is another page
    elsewhere.parent.mkdir(parents=True)
    elsewhere.write_text('<p id="par1">Etwas ganz anderes</p>', "utf-8")
    build(tmp_path / "out", "de", (), root=tree)
    licences = [("libreoffice-help-de", "1", "MPL-2.0"), ("tool", "1", "GPL-3+")]
    assert written(tmp_path / "out") == (["libreoffice-help-de", "tool"], licences)
    assert "The red house\tDas rote Haus\t" in (tmp_path / "out/pairs.tsv").read_text("utf-8")


def test_the_name_of_a_folder_above_says_nothing_about_the_language_of_a_catalogue(tmp_path):
    tree = tmp_path / "fr"
    unpacked(tree, "tool", "MIT", {"Open the file": "Die Datei öffnen"})
    with pytest.raises(ValueError, match="expected pairs of English and fr, got none"):
        build(tmp_path / "out", "fr", (), root=tree)


@pytest.mark.parametrize("root", ["empty", "nowhere"])
def test_no_pairs_are_one_sentence_and_nothing_is_written(tmp_path, capsys, root):
    (tmp_path / "empty/usr/share").mkdir(parents=True)
    arguments = ["translate", "corpus", "-o", str(tmp_path / "out"), "--root", str(tmp_path / root)]
    assert run(arguments) == 2
    assert ("pairs of English and de" if root == "empty" else "a folder") in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_paragraphs_are_those_with_an_id():
    assert paragraphs('<p id="a">x <i>y</i></p><p>z</p><h2 id="b"> t </h2>') == {"a": "x y", "b": "t"}
