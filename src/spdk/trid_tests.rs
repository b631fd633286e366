//! Transport IDs read and refused.
#![allow(clippy::unwrap_used)]

use super::*;
use proptest::prelude::*;

fn id(text: &str) -> TransportId {
    text.parse().unwrap()
}

#[test]
fn every_transport_is_read() {
    let pcie = id("trtype:PCIe traddr:0000:01:00.0");
    assert_eq!(
        (pcie.transport, pcie.bdf().unwrap().bus, pcie.namespace),
        (Transport::Pcie, 1, NamespaceChoice::Only)
    );
    let tcp = id(
        "trtype:tcp adrfam:IPv4 traddr:127.0.0.1 trsvcid:4420 subnqn:nqn.2016-06.io.spdk:cnode1 ns:5",
    );
    assert_eq!(
        tcp.to_string(),
        "trtype:TCP adrfam:IPv4 traddr:127.0.0.1 trsvcid:4420 subnqn:nqn.2016-06.io.spdk:cnode1 ns:5"
    );
    assert_eq!(tcp.namespace, NamespaceChoice::Id(5));
    let six = id("trtype:TCP traddr:::1 trsvcid:4420 subnqn:x ns:all");
    assert!(six.controller_text().contains("adrfam:IPv6 traddr:::1"));
    assert_eq!(six.namespace, NamespaceChoice::All);
    let vfio = id("trtype:VFIOUSER traddr:/var/run/muser/1 subnqn:nqn.2019-07.io.spdk:c0");
    assert_eq!(vfio.address, "/var/run/muser/1");
}

#[test]
fn bare_addresses_and_wide_domains_are_pcie() {
    assert_eq!(id("01:00.0").address, "0000:01:00.0");
    assert_eq!(id("0000:C1:1f.7").address, "0000:c1:1f.7");
    let vmd = id("10002:81:00.0 ns:2");
    assert_eq!(
        (vmd.bdf().unwrap().domain, vmd.address.as_str()),
        (0x1_0002, "10002:81:00.0")
    );
    assert_eq!(vmd.namespace, NamespaceChoice::Id(2));
    assert!(
        TransportId::looks_like_one("10002:81:00.0") && TransportId::looks_like_one("TRTYPE:x")
    );
    assert!(
        !TransportId::looks_like_one("/dev/nvme0n1") && !TransportId::looks_like_one("disk.img")
    );
}

#[test]
fn addresses_that_are_none_are_refused() {
    for text in [
        "0000:01:20.0",
        "0000:01:00.8",
        "0000:001:00.0",
        "000:01:00.0",
        "0:01:00.0",
        "0000:01:00",
        "g000:01:00.0",
        "+000:01:00.0",
    ] {
        assert!(
            matches!(text.parse::<Bdf>(), Err(TridError::BadBdf(_))),
            "{text}"
        );
    }
}

#[test]
fn what_is_missing_or_wrong_is_named() {
    let error = |text: &str| text.parse::<TransportId>().unwrap_err();
    assert!(matches!(
        error("trtype:TCP traddr:127.0.0.1"),
        TridError::Missing { key: "trsvcid", .. }
    ));
    assert!(matches!(
        error("trtype:TCP trsvcid:4420"),
        TridError::Missing { key: "traddr", .. }
    ));
    assert!(matches!(
        error("traddr:127.0.0.1"),
        TridError::Missing { key: "trtype", .. }
    ));
    assert!(matches!(
        error("trtype:VFIOUSER traddr:/x"),
        TridError::Missing { key: "subnqn", .. }
    ));
    assert!(matches!(
        error("trtype:FC traddr:1"),
        TridError::BadTransport(_)
    ));
    assert!(matches!(
        error("trtype:TCP traddr:localhost trsvcid:1"),
        TridError::BadValue {
            what: "numeric IP address",
            ..
        }
    ));
    assert!(matches!(
        error("trtype:TCP traddr:127.0.0.1 trsvcid:70000"),
        TridError::BadValue { .. }
    ));
    assert!(matches!(
        error("trtype:TCP trtype:TCP"),
        TridError::Twice(_)
    ));
    assert!(matches!(error("01:00.0 nsid:1"), TridError::BadWord(_)));
    assert!(matches!(error("01:00.0 ns:0"), TridError::BadValue { .. }));
    assert!(matches!(
        error("01:00.0 ns:4294967295"),
        TridError::BadValue { .. }
    ));
    assert!(matches!(
        error(""),
        TridError::Missing { key: "trtype", .. }
    ));
}

proptest! {
    #[test]
    fn what_is_shown_reads_back(domain: u32, bus: u8, device in 0u8..32, function in 0u8..8) {
        let bdf = Bdf { domain, bus, device, function };
        prop_assert_eq!(bdf.to_string().parse::<Bdf>().unwrap(), bdf);
        let id = id(&bdf.to_string());
        prop_assert_eq!(id.to_string().parse::<TransportId>().unwrap(), id);
    }

    #[test]
    fn no_text_panics(text in ".{0,80}") {
        let _ = text.parse::<TransportId>();
        let _ = TransportId::looks_like_one(&text);
    }
}
