"""Write the PDF and the DOCX of the sample corpus: `python scripts/sample_documents.py`.

By hand, byte for byte the same each time, so that a change of the text is a change of this file.
"""

from __future__ import annotations

import textwrap
import zipfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[1] / "examples" / "docs"

#: A page each: its heading, and its paragraphs.
_RESCUE = [
    (
        "Mountain rescue at Karrow Hut",
        [
            "This sheet hangs beside the radio. It is for whoever is in the house when a call for help comes in,"
            " warden or guest.",
            "The rescue sledge stands in the boot room, behind the long skis. It carries one person and two blankets,"
            " and needs four people on a steep slope, one at each rope.",
            "The helicopter lands on the flat meadow north of the flagpole. Take in the washing and the flag, and keep"
            " everyone behind the woodpile until the rotor stands still.",
        ],
    ),
    (
        "What to ask on the radio",
        [
            "Ask where they are, how many they are, and who is hurt. Ask for the height above sea level: people"
            " mistake one valley for another, but their watches know how high they are.",
            "Ask what they can see of the weather. Say when you will call again, and keep to the minute. The battery at"
            " the other end lasts longer when it is switched off in between.",
            "Channel 4 reaches the rescue post in Ferring. If nobody answers within three minutes, go up to the Sarn"
            " saddle with the hand radio, where channel 6 reaches the valley hospital.",
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

_MINUTES: list[tuple[str, str]] = [
    ("Heading1", "Minutes of the hut meeting"),
    ("", "Held on 14 October in the back room of the Post in Ferring. Eleven members were present."),
    ("Heading2", "The new stove"),
    ("", "The kitchen stove has cracked along its left side and smokes when the wind is from the south. The meeting"),
    (
        "",
        "decided to buy a cast-iron stove with a water jacket, for at most 3,400, and to carry it up in June in parts.",
    ),
    ("Heading2", "The path over the Sarn"),
    ("", "Two of the chains above the gully are loose. Ines and Paul will fix them in the first working week. Until"),
    ("", "then a sign at the saddle sends walkers round by the lake, which takes an hour longer."),
    ("Heading2", "Prices"),
    ("", "A bed in the dormitory will cost two more from next season. Children under twelve still sleep for nothing."),
]
_TASKS = [("Task", "Who", "By"), ("Order the stove", "Margit", "January"), ("Chains on the Sarn", "Ines, Paul", "June")]


def main() -> None:
    for path, content in (
        (ROOT / "wardens" / "rescue.pdf", pdf(_RESCUE)),
        (ROOT / "club" / "minutes.docx", docx(_MINUTES, _TASKS)),
    ):
        path.write_bytes(content)
        print(path.relative_to(ROOT.parents[1]), len(content))


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


_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml"


def docx(paragraphs: Sequence[tuple[str, str]], table: Sequence[Sequence[str]]) -> bytes:
    """Paragraphs of (style, text), where texts without a style that follow each other are one, and a table."""
    body: list[str] = []
    for style, text in paragraphs:
        if not style and body and body[-1].startswith("<w:p><w:r>"):
            run = f'<w:r><w:t xml:space="preserve"> {escape(text)}</w:t></w:r>'
            body[-1] = body[-1].removesuffix("</w:p>") + run + "</w:p>"
        else:
            body.append(_paragraph(style, text))
    rows = "".join(
        "<w:tr>" + "".join(f"<w:tc>{_paragraph('', cell)}</w:tc>" for cell in row) + "</w:tr>" for row in table
    )
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="Heading{level}"><w:name w:val="heading {level}"/>'
        f'<w:pPr><w:outlineLvl w:val="{level - 1}"/></w:pPr></w:style>'
        for level in (1, 2)
    )
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/word/document.xml" ContentType="{_TYPE}.document.main+xml"/>'
        f'<Override PartName="/word/styles.xml" ContentType="{_TYPE}.styles+xml"/></Types>',
        "_rels/.rels": _relationship("officeDocument", "word/document.xml"),
        "word/_rels/document.xml.rels": _relationship("styles", "styles.xml"),
        "word/styles.xml": f'<w:styles xmlns:w="{_W}">{styles}</w:styles>',
        "word/document.xml": f'<w:document xmlns:w="{_W}"><w:body>{"".join(body)}<w:tbl>{rows}</w:tbl>'
        "<w:p/></w:body></w:document>",
    }
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:  # stored, since releases of zlib compress in different ways
        for name, text in parts.items():
            entry = zipfile.ZipInfo(name)  # of 1980, so that the file does not change with the clock
            archive.writestr(entry, '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n' + text)
    return stream.getvalue()


def _paragraph(style: str, text: str) -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}<w:r><w:t>{escape(text)}</w:t></w:r></w:p>"


def _relationship(kind: str, target: str) -> str:
    return (
        f'<Relationships xmlns="{_PACKAGE}/relationships">'
        f'<Relationship Id="rId1" Type="{_OFFICE}/{kind}" Target="{target}"/></Relationships>'
    )


if __name__ == "__main__":
    main()
