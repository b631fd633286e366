//! Standard INQUIRY data.

use super::{Fields, Malformed};

/// Length of the part that every device has.
pub const INQUIRY_BYTES: usize = 36;
/// Peripheral device type of disks (SPC-5, "Peripheral device type").
pub const PERIPHERAL_DISK: u8 = 0x00;
/// Peripheral device type of host managed zoned disks.
pub const PERIPHERAL_HOST_MANAGED_ZONED: u8 = 0x14;

/// Who a logical unit is (SPC-5, "Standard INQUIRY data format").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inquiry {
    /// Byte 0 bits 7:5; 0 where the device is connected.
    pub qualifier: u8,
    /// Byte 0 bits 4:0.
    pub peripheral_type: u8,
    /// RMB, byte 1 bit 7.
    pub is_removable: bool,
    /// Byte 2: 05h SPC-3, 06h SPC-4, 07h SPC-5.
    pub version: u8,
    /// PROTECT, byte 5 bit 0: protection information can be used.
    pub has_protection: bool,
    /// CMDQUE, byte 7 bit 1: commands can be queued.
    pub queues_commands: bool,
    /// T10 VENDOR IDENTIFICATION, bytes 8-15.
    pub vendor: String,
    /// PRODUCT IDENTIFICATION, bytes 16-31.
    pub product: String,
    /// PRODUCT REVISION LEVEL, bytes 32-35.
    pub revision: String,
}

impl Inquiry {
    /// Decodes it.
    ///
    /// # Errors
    /// [`Malformed`] where it is cut short.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let fields = Fields::new("standard INQUIRY data", bytes, INQUIRY_BYTES)?;
        Ok(Self {
            qualifier: fields.u8(0) >> 5,
            peripheral_type: fields.u8(0) & 0x1f,
            is_removable: fields.bit(1, 7),
            version: fields.u8(2),
            has_protection: fields.bit(5, 0),
            queues_commands: fields.bit(7, 1),
            vendor: fields.text(8, 8),
            product: fields.text(16, 16),
            revision: fields.text(32, 4),
        })
    }

    /// Whether it is a disk that is there.
    #[must_use]
    pub const fn is_disk(&self) -> bool {
        self.qualifier == 0
            && matches!(
                self.peripheral_type,
                PERIPHERAL_DISK | PERIPHERAL_HOST_MANAGED_ZONED
            )
    }

    /// What people call it: `SEAGATE ST600`. SATA drives behind a translation are all of vendor `ATA`, which
    /// says nothing.
    #[must_use]
    pub fn model(&self) -> Option<String> {
        match (self.vendor.as_str(), self.product.as_str()) {
            (_, "") => None,
            ("ATA" | "", product) => Some(product.to_owned()),
            (vendor, product) => Some(format!("{vendor} {product}")),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn data() -> Vec<u8> {
        let mut data = vec![0; 8];
        data[2] = 0x07;
        data.extend(b"SEAGATE ST600MM0006     0004");
        data
    }

    #[test]
    fn every_field_is_where_the_table_says() {
        let plain = Inquiry::decode(&[data(), vec![0; 60]].concat()).unwrap();
        assert_eq!(
            (plain.vendor.as_str(), plain.product.as_str()),
            ("SEAGATE", "ST600MM0006")
        );
        assert_eq!((plain.revision.as_str(), plain.version), ("0004", 7));
        assert_eq!(plain.model().as_deref(), Some("SEAGATE ST600MM0006"));
        assert!(plain.is_disk() && !plain.is_removable);
        assert!(!plain.has_protection && !plain.queues_commands);
        let with = |at: usize, value| {
            let mut data = [data(), vec![0; 8]].concat();
            data[at] = value;
            Inquiry::decode(&data).unwrap()
        };
        assert_eq!(with(0, 0x7f).qualifier, 3);
        assert_eq!(with(0, 0x7f).peripheral_type, 0x1f);
        assert!(!with(0, 0x20).is_disk() && with(0, 0x14).is_disk() && !with(0, 0x05).is_disk());
        assert!(with(1, 0x80).is_removable);
        assert!(with(5, 0x01).has_protection && with(7, 0x02).queues_commands);
    }

    #[test]
    fn a_sata_drive_is_called_by_its_product_alone() {
        let mut data = data();
        data[8..16].copy_from_slice(b"ATA     ");
        data.resize(INQUIRY_BYTES, 0);
        let found = Inquiry::decode(&data).unwrap();
        assert_eq!(found.model().as_deref(), Some("ST600MM0006"));
        data[16..32].fill(b' ');
        assert_eq!(Inquiry::decode(&data).unwrap().model(), None);
    }

    proptest! {
        #[test]
        fn anything_is_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            prop_assert_eq!(Inquiry::decode(&bytes).is_ok(), bytes.len() >= INQUIRY_BYTES);
        }
    }
}
