"""Every way to write an address or a name that the host guard refuses (spec datasources 13.4)."""

import ipaddress

import pytest

from fetcher.datasources.host_guard import Rule, literal_of
from tests.unit.datasources.test_host_guard import rule_of

METADATA = (
    # AWS, GCP, Azure, OpenStack; AWS's over IPv6; its containers'; Alibaba; Azure's own; Oracle's
    "169.254.169.254",
    "fd00:ec2::254",
    "169.254.170.2",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
)
PRIVATE = ("127.0.0.1", "10.9.8.7", "172.31.0.4", "192.168.7.7", *METADATA)


def ways_to_write(address: str) -> dict[str, str]:
    """Every notation of an address that some resolver, parser or browser takes for it."""
    if ":" in address:
        whole = ipaddress.IPv6Address(address)
        return {
            "canonical": str(whole),
            "upper case": str(whole).upper(),
            "exploded": whole.exploded,
            "with a zone": f"{whole}%eth0",
            "in brackets": f"[{whole}]",
        }
    number = int(ipaddress.IPv4Address(address))
    parts = address.split(".")
    high, low = f"{number >> 16:x}", f"{number & 0xFFFF:x}"
    return {
        "canonical": address,
        "integer": str(number),
        "hexadecimal integer": hex(number),
        "upper hexadecimal integer": f"0X{number:X}",
        "octal integer": f"0{number:o}",
        "octal parts": ".".join(f"0{int(part):o}" for part in parts),
        "hexadecimal parts": ".".join(hex(int(part)) for part in parts),
        "mixed parts": f"{hex(int(parts[0]))}.0{int(parts[1]):o}.{parts[2]}.{parts[3]}",
        "zeros in front": ".".join(part.zfill(4) for part in parts),
        "two parts": f"{parts[0]}.{number & 0xFFFFFF}",
        "three parts": f"{parts[0]}.{parts[1]}.{number & 0xFFFF}",
        "a dot behind": f"{address}.",
        "a dot in front": f".{address}",
        "a blank in front": f" {address}",
        "a port behind": f"{address}:80",
        "a zero behind": f"{address}\0.example.net",
        "a user in front": f"public.example.net@{address}",
        "a fragment behind": f"{address}#.example.net",
        "a slash behind": f"{address}/.example.net",
        "full-width digits": address.translate({48 + n: 0xFF10 + n for n in range(10)}),
        "full-width dots": address.replace(".", "\uff0e"),
        "ideographic dots": address.replace(".", "\u3002"),
        "half-width dots": address.replace(".", "\uff61"),
        "percent-encoded": "".join(f"%{ord(character):02x}" for character in address),
        "percent-encoded dots": address.replace(".", "%2e"),
        "soft hyphen": f"{address[0]}\u00ad{address[1:]}",
        "joiner": f"{address[0]}\u200d{address[1:]}",
        "mapped": f"::ffff:{address}",
        "mapped in hexadecimal": f"::ffff:{high}:{low}",
        "mapped in upper case": f"::FFFF:{high.upper()}:{low.upper()}",
        "mapped and exploded": f"0:0:0:0:0:ffff:{high}:{low}",
        "mapped with a zone": f"::ffff:{address}%1",
        "mapped in brackets": f"[::ffff:{address}]",
        "compatible": f"::{address}",
        "translated": f"::ffff:0:{high}:{low}",
        "NAT64": f"64:ff9b::{high}:{low}",
        "NAT64 with dots": f"64:ff9b::{address}",
        "local NAT64": f"64:ff9b:1::{high}:{low}",
        "6to4": f"2002:{high}:{low}::1",
        "Teredo": f"2001:0:{high}:{low}::1",
        "Teredo client": f"2001::{number >> 16 ^ 0xFFFF:x}:{number & 0xFFFF ^ 0xFFFF:x}",
    }


@pytest.mark.parametrize("address", PRIVATE)
def test_no_way_to_write_a_private_or_metadata_address_leads_there(address: str) -> None:
    """Whatever the resolver would make of it, also where it says that it leads somewhere public."""
    for notation, text in ways_to_write(address).items():
        literal = [text] if literal_of(text) is not None else []
        for addresses in (literal, [*literal, "8.8.8.8"], [*literal, address]):
            assert rule_of(text, *addresses) in (Rule.FORM, Rule.RANGE), f"{notation}: {text}"


@pytest.mark.parametrize("address", PRIVATE)
def test_a_name_that_resolves_to_one_is_refused_however_the_resolver_writes_it(
    address: str,
) -> None:
    for notation, text in ways_to_write(address).items():
        assert rule_of("db.example.net", "8.8.8.8", text) is Rule.RANGE, f"{notation}: {text}"


@pytest.mark.parametrize(
    "text",
    [
        "localhost",
        "LoCaLhOsT",
        "localhost.",
        "localhost..",
        "ｌｏｃａｌｈｏｓｔ",  # noqa: RUF001 - full-width letters
        "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
        "local\u00adhost",
        "loca%6chost",
        "a.localhost",
        "METADATA.google.internal",
        "metadata.google.internal.",
        "metadata。google。internal",
        "metadata.google.interna\u217c",
        "x.CLUSTER.local",
        "printer.local",
        "x.internal",
    ],
)
def test_no_way_to_write_a_refused_name_leads_there(text: str) -> None:
    for addresses in ((), ("8.8.8.8",), ("127.0.0.1",)):
        assert rule_of(text, *addresses) in (Rule.FORM, Rule.NAME)
