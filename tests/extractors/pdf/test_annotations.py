"""Form fields and notes on a page."""

from __future__ import annotations

from tests.extractors.pdf.builder import build, extract, pages, texts


def _document(contents: list[str], annotations: dict[int, list[int]], objects: dict[int, str]) -> bytes:
    """Pages with the annotations whose objects are named, by the page's index."""
    source = pages(contents)
    for index, numbers in annotations.items():
        page = f"/Contents {11 + 2 * index} 0 R"
        source = source.replace(page, f"{page} /Annots [{' '.join(f'{number} 0 R' for number in numbers)}]")
    return build("\n".join([source, *(f"{number} 0 obj\n<< {body} >>\nendobj" for number, body in objects.items())]))


def test_notes_and_fields() -> None:
    """What was filled in and written on a page follows its text, in order; fields with two places are read once."""
    data = _document(
        ["BT /F1 12 Tf 72 720 Td (Form) Tj ET", ""],
        {0: [80, 81, 82, 83], 1: [84, 85]},
        {
            80: "/Subtype /Widget /FT /Tx /V (Ren\\351)",
            81: "/Subtype /FreeText /Contents <FEFF0061000D0062>",
            82: "/Subtype /Widget /FT /Ch /V [(red) (green)]",
            83: "/Subtype /Widget /Parent 90 0 R",
            84: "/Subtype /Widget /Parent 90 0 R",
            85: "/Subtype /Widget /FT /Tx /V 91 0 R",
            90: "/FT /Tx /V (shared) /Kids [83 0 R 84 0 R]",
            91: ">>\nstream\n(long value)\nendstream\nendobj\n92 0 obj\n<<",
        },
    )
    document = extract(data)
    assert texts(document) == [
        ("paragraph", 0, 1, "Form"),
        ("paragraph", 0, 1, "Ren\xe9"),
        ("paragraph", 0, 1, "a\nb"),
        ("paragraph", 0, 1, "red\ngreen"),
        ("paragraph", 0, 1, "shared"),
        ("paragraph", 0, 2, "(long value)"),
    ]
    assert document.metadata["pages_with_text"] == 2


def test_what_is_not_read() -> None:
    """Passwords, hidden fields, buttons, comments that pop up, and what is broken are left out."""
    data = _document(
        ["BT /F1 12 Tf 72 720 Td (Form) Tj ET"],
        {0: [80, 81, 82, 83, 84, 85, 86]},
        {
            80: "/Subtype /Widget /FT /Tx /Ff 8192 /V (secret)",
            81: "/Subtype /Widget /FT /Tx /F 2 /V (hidden)",
            82: "/Subtype /Widget /FT /Btn /V /Yes",
            83: "/Subtype /Text /Contents (comment)",
            84: "/Subtype /Widget /FT /Tx /V 7 /Parent 84 0 R",
            85: "/Subtype /FreeText /F 32 /Contents (not on the screen)",
        },
    )
    assert extract(data).text == "Form"
