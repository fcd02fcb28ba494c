"""Write the PDF and the Word document of the sample corpus: `python scripts/sample_documents.py`.

By hand, byte for byte the same each time, so that a change of the text is a change of this file.
"""

from __future__ import annotations

import io
import textwrap
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[1] / "examples" / "docs"

#: A page each: its heading, and its paragraphs.
RESCUE = [
    (
        "Mountain rescue at Karrow Hut",
        [
            "This sheet hangs beside the radio. It is for whoever is in the house when a call for help comes in,"
            " warden or guest.",
            "The rescue sledge stands in the boot room, behind the long skis. It carries one person and two blankets,"
            " and needs four people on a steep slope, one at each rope.",
            "When the helicopter comes, keep everyone behind the woodpile until the rotor stands still, and hold on to"
            " your hats.",
        ],
    ),
    (
        "What to ask on the radio",
        [
            "Ask where they are, how many they are, and who is hurt. Ask for the height above sea level: people"
            " mistake one valley for another, but their watches know how high they are.",
            "Ask what they can see of the weather. Say when you will call again, and keep to the minute. The battery at"
            " the other end lasts longer when it is switched off in between.",
            "The rescue answers on channel 7. If nobody does within three minutes, go up to the Sarn saddle with the"
            " hand radio, where channel 9 reaches the hospital in the valley.",
        ],
    ),
    (
        "Avalanche accidents",
        [
            "Leave at once with probes, shovels and transceivers: they lie in the red chest under the stairs, eight of"
            " each. Half of those who are buried live if they are found within fifteen minutes.",
            "One person stays by the radio, writes down every call with its time, and puts the big kettle on.",
        ],
    ),
]


class Styled(NamedTuple):
    """A paragraph in one of the styles of `_STYLES`, and the footnote that it calls at its end."""

    style: str
    text: str
    note: str = ""


#: Paragraphs, and tables: rows of cells.
MINUTES: list[Styled | list[list[str]]] = [
    Styled("Heading1", "Minutes of the yearly meeting"),
    Styled(
        "Normal",
        "Held on 16 March 2024 in the back room of the Lamb in Ferring, from 19:30 until the landlord put the chairs"
        " up. Present were 58 members and one dog. Clemens Aber took the chair; Ines Kolb wrote the minutes.",
    ),
    Styled("Heading2", "Accounts"),
    Styled(
        "Normal",
        "Hedwig Sollner read out the accounts of the hut for two years. The auditors had found one mistake, of four"
        " crowns, in favour of the club.",
    ),
    [
        ["In crowns", "2022", "2023"],
        ["Beds", "78,300", "84,900"],
        ["Meals and drinks", "141,600", "156,200"],
        ["Repairs", "-31,700", "-52,400"],
        ["Wages and insurance", "-118,000", "-121,500"],
        ["Left over", "70,200", "67,200"],
    ],
    Styled(
        "Normal",
        "Most of what was repaired is the work of one storm. The insurance paid for half of it.",
        "The insurer holds that the other half was broken before. The letters are with the treasurer.",
    ),
    Styled("Heading2", "Elections"),
    Styled(
        "Normal",
        "Hedwig Sollner gives up the cash box after nineteen years, to long applause. Pavel Drost was elected treasurer"
        " with 51 votes. Clemens Aber remains president for two more years, since nobody else would.",
    ),
    Styled("Heading2", "Motions"),
    Styled("ListNumber", "The yearly fee of a member rises from 60 to 68 crowns. Carried, 40 to 15."),
    Styled(
        "ListNumber",
        "The club buys a second defibrillator, for the sawmill. Carried without a vote against.",
        "The price, 2,350 crowns, comes from the legacy of Agnes Lohr's niece.",
    ),
    Styled("ListNumber", "A hot tub on the terrace. Rejected, 3 to 52, after a long and cheerful debate."),
    Styled("Heading2", "Next meeting"),
    Styled(
        "Normal", "On 15 March 2025, in the same room. Whoever wants a motion read sends it in by the end of January."
    ),
]


def main() -> None:
    for name, content in (("wardens/rescue.pdf", pdf(RESCUE)), ("club/minutes.docx", docx(MINUTES))):
        path = ROOT / name
        path.write_bytes(content)
        print(path.relative_to(ROOT.parents[1]), path.stat().st_size)


def pdf(pages: Sequence[tuple[str, Sequence[str]]]) -> bytes:
    """A page for each heading, which the outline names too. ASCII in Helvetica, without compression."""
    count = len(pages)
    first = 5  # the objects before the pages: catalog, tree, font, outline
    kids = " ".join(f"{first + 2 * number} 0 R" for number in range(count))
    items = first + 2 * count
    objects = [
        "<< /Type /Catalog /Pages 2 0 R /Outlines 4 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {count} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        f"<< /Type /Outlines /First {items} 0 R /Last {items + count - 1} 0 R /Count {count} >>",
    ]
    for number, (heading, paragraphs) in enumerate(pages):
        content = _page(heading, paragraphs)
        objects += [
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >>"
            f" /Contents {first + 2 * number + 1} 0 R >>",
            f"<< /Length {len(content)} >>\nstream\n{content}\nendstream",
        ]
    for number, (heading, _) in enumerate(pages):
        around = [f" /Prev {items + number - 1} 0 R"] if number else []
        around += [f" /Next {items + number + 1} 0 R"] if number + 1 < count else []
        page = first + 2 * number
        objects.append(
            f"<< /Title ({_quoted(heading)}) /Parent 4 0 R{''.join(around)} /Dest [{page} 0 R /XYZ 0 842 0] >>"
        )
    body, offsets = "%PDF-1.4\n", list[int]()
    for number, text in enumerate(objects, start=1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{text}\nendobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    trailer = f"trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
    return f"{body}xref\n0 {size}\n0000000000 65535 f \n{table}{trailer}".encode("ascii")


def _page(heading: str, paragraphs: Sequence[str]) -> str:
    lines = ["BT", "/F1 18 Tf", "1 0 0 1 72 760 Tm", f"({_quoted(heading)}) Tj", "/F1 11 Tf"]
    height = 725
    for paragraph in paragraphs:
        for line in textwrap.wrap(paragraph, 84):
            lines += [f"1 0 0 1 72 {height} Tm", f"({_quoted(line)}) Tj"]
            height -= 14
        height -= 12
    return "\n".join([*lines, "ET"])


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")


_XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml"
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
#: The parts beside the document's own, by their kind.
_ASIDE = ("styles", "numbering", "footnotes")
#: By id: the name, and the properties of its paragraphs and its letters.
_STYLES = {
    "Normal": ("Normal", '<w:spacing w:after="120"/>', ""),
    "Heading1": ("heading 1", '<w:keepNext/><w:outlineLvl w:val="0"/>', '<w:b/><w:sz w:val="36"/>'),
    "Heading2": ("heading 2", '<w:keepNext/><w:outlineLvl w:val="1"/>', '<w:b/><w:sz w:val="28"/>'),
    "ListNumber": ("List Number", '<w:numPr><w:numId w:val="1"/></w:numPr>', ""),
    "FootnoteText": ("footnote text", "", '<w:sz w:val="18"/>'),
}


def docx(body: Sequence[Styled | list[list[str]]]) -> bytes:
    """Stored without compression and without times, so that the bytes do not depend on where they are written."""
    notes: list[str] = []
    content = "".join(_paragraph(one, notes) if isinstance(one, Styled) else _table(one) for one in body)
    parts = {
        "[Content_Types].xml": _content_types(),
        "_rels/.rels": _relations([("officeDocument", "word/document.xml")]),
        "word/document.xml": f"<w:document {_WORD}><w:body>{content}<w:sectPr/></w:body></w:document>",
        "word/_rels/document.xml.rels": _relations([(kind, f"{kind}.xml") for kind in _ASIDE]),
        "word/styles.xml": f"<w:styles {_WORD}>{''.join(_style(style_id) for style_id in _STYLES)}</w:styles>",
        "word/numbering.xml": f'<w:numbering {_WORD}><w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0">'
        '<w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/>'
        '<w:pPr><w:ind w:left="360" w:hanging="360"/></w:pPr></w:lvl></w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num></w:numbering>',
        "word/footnotes.xml": f"<w:footnotes {_WORD}>{''.join(notes)}</w:footnotes>",
    }
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as writer:
        for name, text in parts.items():
            entry = zipfile.ZipInfo(name)  # its time is the first that there is
            entry.create_system = 3  # else that of the machine
            writer.writestr(entry, (_XML + text).encode())
    return archive.getvalue()


def _content_types() -> str:
    parts = [("document", "document.main"), *((kind, kind) for kind in _ASIDE)]
    overrides = (f'<Override PartName="/word/{name}.xml" ContentType="{_TYPE}.{kind}+xml"/>' for name, kind in parts)
    return (
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels"'
        ' ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Default Extension="xml" ContentType="application/xml"/>{"".join(overrides)}</Types>'
    )


def _relations(targets: Sequence[tuple[str, str]]) -> str:
    items = (
        f'<Relationship Id="rId{number}" Type="{_RELATIONS}/{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(targets, start=1)
    )
    namespace = "http://schemas.openxmlformats.org/package/2006/relationships"
    return f'<Relationships xmlns="{namespace}">{"".join(items)}</Relationships>'


def _style(style_id: str) -> str:
    name, paragraph, letters = _STYLES[style_id]
    default = ' w:default="1"' if style_id == "Normal" else ""
    based = "" if default else '<w:basedOn w:val="Normal"/>'
    return (
        f'<w:style w:type="paragraph" w:styleId="{style_id}"{default}><w:name w:val="{name}"/>{based}'
        f"<w:pPr>{paragraph}</w:pPr><w:rPr>{letters}</w:rPr></w:style>"
    )


def _paragraph(styled: Styled, notes: list[str], mark: str = "") -> str:
    call = ""
    if styled.note:
        number = len(notes) + 1
        note = _paragraph(Styled("FootnoteText", styled.note), notes, _raised("<w:footnoteRef/>"))
        notes.append(f'<w:footnote w:id="{number}">{note}</w:footnote>')
        call = _raised(f'<w:footnoteReference w:id="{number}"/>')
    properties = f'<w:pPr><w:pStyle w:val="{styled.style}"/></w:pPr>'
    return f"<w:p>{properties}{mark}<w:r><w:t>{escape(styled.text)}</w:t></w:r>{call}</w:p>"


def _raised(content: str) -> str:
    return f'<w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr>{content}</w:r>'


def _table(rows: Sequence[Sequence[str]]) -> str:
    cells = ["".join(f"<w:tc>{_paragraph(Styled('Normal', cell), [])}</w:tc>" for cell in row) for row in rows]
    grid = '<w:gridCol w:w="2400"/>' * len(rows[0])
    return (
        f'<w:tbl><w:tblPr><w:tblW w:w="0" w:type="auto"/></w:tblPr><w:tblGrid>{grid}</w:tblGrid>'
        f"{''.join(f'<w:tr>{row}</w:tr>' for row in cells)}</w:tbl>"
    )


if __name__ == "__main__":
    main()
