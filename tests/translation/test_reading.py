"""Readers of pairs: what each format says, and one sentence for what is broken."""

import gettext
import gzip
import struct

import pytest

from anyfill.translation.catalogues import entries, translate_catalogue
from anyfill.translation.cleaning import Counts, Rules, cleaned, complaint, is_held_out, without_accelerators
from anyfill.translation.reading import read_mo, read_pairs, read_po, read_tmx, sources_of
from anyfill.translation.texts import Translation

PO = r"""
# header
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Language: de\n"

msgid "Open %s"
msgstr "%s öffnen"

#, c-format
msgctxt "menu"
msgid "One "
"file"
msgid_plural "%d files"
msgstr[0] "Eine Datei"
msgstr[1] "%d Dateien"

#, fuzzy
msgid "Wrong"
msgstr "Falsch geraten"

msgid "A \"quoted\" \\ word\n"
msgstr "Ein \"zitiertes\" \\ Wort\n"

msgid "Untranslated"
msgstr ""

#~ msgid "Old"
#~ msgstr "Alt"
"""
WANTED = [
    ("Open %s", "%s öffnen"),
    ("One file", "Eine Datei"),
    ("%d files", "%d Dateien"),
    ('A "quoted" \\ word\n', 'Ein "zitiertes" \\ Wort\n'),
]


def write_mo(path, entries):
    """A compiled catalogue, as msgfmt writes it; Python's own gettext reads it back below."""
    entries = sorted({"": "Content-Type: text/plain; charset=UTF-8\n", **entries}.items())
    ids, strings = b"", b""
    offsets = []
    for key, value in entries:
        a, b = key.encode(), value.encode()
        offsets.append((len(a), len(ids), len(b), len(strings)))
        ids, strings = ids + a + b"\0", strings + b + b"\0"
    first, second = 28, 28 + 8 * len(entries)
    start = second + 8 * len(entries)
    head = struct.pack("<7I", 0x950412DE, 0, len(entries), first, second, 0, 0)
    tables = b"".join(struct.pack("<2I", size, start + at) for size, at, _, _ in offsets)
    tables += b"".join(struct.pack("<2I", size, start + len(ids) + at) for _, _, size, at in offsets)
    path.write_bytes(head + tables + ids + strings)


def test_a_catalogue_gives_its_entries_plural_forms_and_escapes(tmp_path):
    path = tmp_path / "de.po"
    path.write_text(PO, "utf-8")
    assert list(read_po(path)) == WANTED


def test_a_compiled_catalogue_gives_what_gettext_reads(tmp_path):
    path = tmp_path / "de.mo"
    write_mo(path, {"Open %s": "%s öffnen", "menu\x04One file\0%d files": "Eine Datei\0%d Dateien"})
    with path.open("rb") as file:
        assert gettext.GNUTranslations(file).gettext("Open %s") == "%s öffnen"
    assert sorted(read_mo(path)) == sorted(WANTED[:3])
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match="cut off"):
        list(read_mo(path))
    path.write_bytes(b"no catalogue at all")
    with pytest.raises(ValueError, match=r"a \.mo catalogue"):
        list(read_mo(path))


def test_tmx_gives_units_in_both_languages_without_their_markup(tmp_path):
    path = tmp_path / "memory.tmx"
    path.write_text(
        '<?xml version="1.0"?><tmx version="1.4"><body>'
        '<tu><tuv xml:lang="en-US"><seg>A <bpt i="1">&lt;b&gt;</bpt>red<ept i="1">x</ept> <hi>house</hi></seg></tuv>'
        '<tuv xml:lang="DE"><seg>Ein rotes Haus</seg></tuv></tu>'
        '<tu><tuv xml:lang="fr"><seg>Maison</seg></tuv><tuv xml:lang="en"><seg>House</seg></tuv></tu>'
        "</body></tmx>",
        "utf-8",
    )
    assert list(read_tmx(path, "de", "en")) == [("Ein rotes Haus", "A red house")]
    path.write_text("<tmx><body><tu>", "utf-8")
    with pytest.raises(ValueError, match="XML that is whole"):
        list(read_tmx(path, "de", "en"))


def test_a_memory_is_let_go_while_it_is_read(tmp_path):
    """At every unit nothing of those before it is left: a memory of any size goes through."""
    from xml.etree import ElementTree

    unit = '<tu><tuv xml:lang="{}"><seg>{}</seg></tuv><tuv xml:lang="{}"><seg>{}</seg></tuv></tu>'
    units = "".join(unit.format("de", f"Satz {i}", "en", f"sentence {i}") for i in range(20_000))
    path = tmp_path / "m.tmx"
    path.write_text(f'<tmx version="1.4"><header/><body>{units}</body></tmx>', "utf-8")
    roots, parse = [], ElementTree.iterparse

    def watched(*arguments, **options):
        for event, node in parse(*arguments, **options):
            roots.append(node)
            yield event, node

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ElementTree, "iterparse", watched)
        most = count = 0
        for _ in read_tmx(path, "de", "en"):
            count += 1
            if count % 100 == 0:
                most = max(most, sum(1 for _ in roots[0].iter()))
            del roots[1:]
    assert count == 20_000
    assert 0 < most < 8_000  # the parser is fed in blocks, which hold some hundred units of five elements


def test_files_in_two_languages_belong_together_by_name_and_line(tmp_path):
    with gzip.open(tmp_path / "train.de.gz", "wt", encoding="utf-8") as file:
        file.write("Guten Morgen\nGuten Abend\n")
    (tmp_path / "train.en").write_text("Good morning\nGood evening\n", "utf-8")
    paths = [tmp_path / "train.en", tmp_path / "train.de.gz"]
    assert list(read_pairs(sources_of(paths, "de", "en"), "de"))[1] == ("Guten Abend", "Good evening")
    assert list(read_pairs(sources_of(paths, "en", "de"), "en"))[1] == ("Good evening", "Guten Abend")
    (tmp_path / "train.en").write_text("Good morning\n", "utf-8")
    with pytest.raises(ValueError, match=r"as many lines as train\.de\.gz"):
        list(read_pairs(sources_of(paths, "de", "en"), "de"))
    with pytest.raises(ValueError, match=r"train\.de beside it"):
        sources_of([tmp_path / "train.en"], "de", "en")


def test_columns_may_stand_the_other_way_round(tmp_path):
    path = tmp_path / "x.tsv"
    path.write_text("Good morning\tGuten Morgen\tsource: me\n\n", "utf-8")
    sources = sources_of([path], "de", "en", ("en", "de"))
    assert list(read_pairs(sources, "de")) == [("Guten Morgen", "Good morning")]
    with pytest.raises(ValueError, match="a file of de and en"):
        sources_of([path], "de", "en", ("en", "fr"))


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"no tab here\n", "two columns"), (b"a\tb\nbad \xff\tx\n", "line 2: expected text in UTF-8")],
)
def test_a_broken_line_is_named(tmp_path, content, message):
    path = tmp_path / "x.tsv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        list(read_pairs(sources_of([path], "de", "en"), "de"))


def test_cleaning_says_why(tmp_path):
    pairs = [
        ("Guten  Morgen\x07", "Good morning"),
        ("Guten Morgen", "Good morning"),
        ("", "nothing"),
        ("OK", "ok"),
        ("Datei %s", "File"),
        ("<b>Halt</b>", "<b>Stop</b>"),
        ("ja " * 2, "yes " * 30),
    ]
    counts = Counts()
    assert list(cleaned(pairs, Rules(), counts)) == [("Guten Morgen", "Good morning"), ("⟦0⟧Halt⟦1⟧", "⟦0⟧Stop⟦1⟧")]
    assert counts.read == 7
    assert counts.dropped == {
        "seen before": 1,
        "with an empty side": 1,
        "with equal sides": 1,
        "with markup or placeholders that do not match": 1,
        "of too different length": 1,
    }
    assert list(cleaned([("_File", "_Datei"), ("&Open", "Ö&ffnen")], Rules(interface=True), Counts())) == [
        ("File", "Datei"),
        ("Open", "Öffnen"),
    ]


def test_languages_without_spaces_may_have_few_words():
    assert complaint("これは とても 長い 文 です", "This is a rather long sentence, " * 2, Rules()) is None


def test_a_source_sentence_is_held_out_with_all_its_translations_or_not_at_all():
    kept = {text: is_held_out(text, 0.3) for text in (f"Satz {i}" for i in range(2000))}
    assert 0.25 < sum(kept.values()) / 2000 < 0.35
    for text, value in list(kept.items())[:50]:
        assert is_held_out(f"  {text.upper()}!", 0.3) == value
    assert not is_held_out("x", 0.0)
    assert is_held_out("x", 1.0)


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("_File", "File"),
        ("Open the &file", "Open the file"),
        ("(&Quit)", "(Quit)"),
        ("<b>_Save</b> now", "<b>Save</b> now"),
        ("_Open {user_name}, %(file_name)s", "Open {user_name}, %(file_name)s"),
    ],
)
def test_the_mark_of_a_key_goes(text, bare):
    assert without_accelerators(text) == bare


@pytest.mark.parametrize(
    "text",
    [
        "{user_name}",
        "%(file_name)s",
        '<a href="x?a=1&b=2">',
        "file_name",
        "R&D",
        "this & that",
        "Find && replace",
        "&amp; more",
        "x?a=1&b=2",
        "_one _two",
        "__init__",
        "_private_name",
        "{dir}_name",
        "____",
    ],
)
def test_what_is_no_mark_of_a_key_stays(text):
    assert without_accelerators(text) == text


@pytest.mark.parametrize(
    ("pair", "bare"),
    [
        (("&Open it", "Ö&ffnen Sie"), ("Open it", "Öffnen Sie")),
        (("Ö_ffnen Sie", "_Open it"), ("Öffnen Sie", "Open it")),
        (("_About R&D", "Über R&D"), ("About R&D", "Über R&D")),  # another sign
        (("&About R&D", "Über R&D"), ("About R&D", "Über R&D")),  # a word of both sides
        (("&About R&D", "Ü&ber R&D"), ("About R&D", "Über R&D")),
        (("&R&D office", "Büro für R&D"), ("R&D office", "Büro für R&D")),
        (("_Save file_name", "file_name speichern"), ("Save file_name", "file_name speichern")),
        (("_Save it", "Sp_eichern ab_c"), ("Save it", "Sp_eichern ab_c")),  # which one nobody knows
    ],
)
def test_inside_a_word_only_the_sign_of_the_other_side_is_the_mark_of_a_key(pair, bare):
    assert list(cleaned([pair], Rules(interface=True), Counts())) == [bare]
    assert list(cleaned([pair[::-1]], Rules(interface=True), Counts())) == [bare[::-1]]


def test_a_catalogue_keeps_placeholders_as_they_are_and_the_space_around_its_lines(tmp_path):
    path, translator = tmp_path / "app.po", Shouting()
    ids = ["{user_name} R&D", "%(file_name)s", '<a href=\\"x?a=1&b=2\\">', "  two \\n\\n end\\n", " ", "\\tof "]
    path.write_text("".join(f'msgid "{one}"\nmsgstr ""\n\n' for one in ids), "utf-8")
    content, _, _ = translate_catalogue(translator, path)
    found = [entry.fields for entry in entries(content.splitlines(), "new") if entry.fields]
    assert {"{user_name} R&D", "%(file_name)s", '<a href="x?a=1&b=2">'} <= set(translator.read)
    assert [one["msgstr"] for one in found] == [one["msgid"].upper() for one in found]


class Shouting:
    """Says what it reads in capitals, and remembers it."""

    def translate(self, texts, **options):
        self.read = list(texts)
        return [Translation(text, text.upper().replace("%D", "%d"), 0.0, 1) for text in texts]


def test_a_catalogue_keeps_the_ends_of_its_lines(tmp_path):
    path = tmp_path / "app.po"
    path.write_bytes(EMPTY.replace("\n", "\r\n").encode())
    content, _, _ = translate_catalogue(Shouting(), path)
    assert content.count("\n") == content.count("\r\n") > 0


def test_a_catalogue_keeps_the_end_of_each_line_as_it_is(tmp_path):
    path = tmp_path / "app.po"
    path.write_bytes(b'# one\nmsgid "Yes"\r\nmsgstr "Ja"\n\r\n#, c-format\r\nmsgid "No"\nmsgstr ""\r\n\n# end')
    content, _, _ = translate_catalogue(Shouting(), path)
    same, changed = b'# one\nmsgid "Yes"\r\nmsgstr "Ja"\n\r\n', b'#, c-format, fuzzy\r\nmsgid "No"\nmsgstr "NO"\r\n'
    assert content.encode() == same + changed + b"\n# end"
    path.write_bytes(b'msgid "No"\r\nmsgstr ""')
    assert translate_catalogue(Shouting(), path)[0] == '#, fuzzy\r\nmsgid "No"\r\nmsgstr "NO"\r\n'


def test_the_empty_entries_of_a_catalogue_are_filled_and_nothing_else_changes(tmp_path):
    path, translator = tmp_path / "app.po", Shouting()
    path.write_text(EMPTY, "utf-8")
    content, count, _ = translate_catalogue(translator, path)
    assert count == 4
    assert "Open file" in translator.read  # without its accelerator
    assert [line for line in EMPTY.splitlines() if not line.startswith("msgstr") and line != "#, fuzzy"] == [
        line.replace(", fuzzy", "") if "c-format" in line else line
        for line in content.splitlines()
        if line != "#, fuzzy"
        and not line.startswith("msgstr")
        and line not in ('"TWO DOGS.\\n"', '"A \\"RED\\" HAT.\\n"')
    ]
    (tmp_path / "new.po").write_text(content, "utf-8")
    again = list(entries(content.splitlines(), "new"))
    assert not any(entry.is_empty for entry in again)
    by_id = {entry.fields.get("msgid"): entry for entry in again}
    assert by_id["%d dog"].fields["msgstr[0]"] == "%d DOG"
    assert by_id["%d dog"].fields["msgstr[1]"] == by_id["%d dog"].fields["msgstr[2]"] == "%d DOGS"
    assert by_id['Two dogs.\nA "red" hat.\n'].fields["msgstr"] == 'TWO DOGS.\nA "RED" HAT.\n'
    assert all(by_id[name].fuzzy for name in ("%d dog", "_Open file", "Save"))
    assert not by_id["Yes"].fuzzy
    assert list(read_po(tmp_path / "new.po")) == [("Yes", "Ja")]  # what nobody has looked at is not learnt from


EMPTY = r"""# A catalogue.
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"

msgid "_Open file"
msgstr ""

#: a.c:2
#, c-format
msgid "%d dog"
msgid_plural "%d dogs"
msgstr[0] ""
msgstr[1] ""
msgstr[2] ""

msgctxt "menu"
msgid "Save"
msgstr ""

msgid ""
"Two dogs.\n"
"A \"red\" hat.\n"
msgstr ""

#, fuzzy
#~ msgid "old"
#~ msgstr "alt"

msgid "Yes"
msgstr "Ja"
"""
