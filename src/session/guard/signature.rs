//! Names of what can be found on a device: partition tables, file systems, members of something larger.

use std::fmt;

macro_rules! signatures {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $what:literal;)*) => {
        /// Something recognisable on a device that a write would destroy.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Signature {
            $($(#[$doc])* $variant,)*
        }

        impl Signature {
            /// Every signature that is looked for.
            pub const ALL: &[Signature] = &[$(Signature::$variant,)*];

            /// The name that `--overwrite` takes.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Signature::$variant => $name,)* }
            }

            /// What it is, in words.
            #[must_use]
            pub const fn what(self) -> &'static str {
                match self { $(Signature::$variant => $what,)* }
            }
        }
    };
}

signatures! {
    /// GUID partition table.
    Gpt = "gpt", "GPT partition table";
    /// MBR partition table.
    Mbr = "mbr", "MBR partition table";
    /// ext2.
    Ext2 = "ext2", "ext2 file system";
    /// ext3.
    Ext3 = "ext3", "ext3 file system";
    /// ext4.
    Ext4 = "ext4", "ext4 file system";
    /// XFS.
    Xfs = "xfs", "XFS file system";
    /// btrfs.
    Btrfs = "btrfs", "btrfs file system";
    /// F2FS.
    F2fs = "f2fs", "F2FS file system";
    /// LVM2 physical volume.
    Lvm = "lvm", "LVM physical volume";
    /// LUKS version 1.
    Luks1 = "luks1", "LUKS1 encrypted volume";
    /// LUKS version 2.
    Luks2 = "luks2", "LUKS2 encrypted volume";
    /// Linux software RAID.
    Md = "md", "md RAID member";
    /// ZFS vdev.
    Zfs = "zfs", "ZFS pool member";
    /// Swap area, or a hibernation image in one.
    Swap = "swap", "swap area";
    /// NTFS.
    Ntfs = "ntfs", "NTFS file system";
    /// FAT12, FAT16, FAT32.
    Fat = "fat", "FAT file system";
    /// exFAT.
    Exfat = "exfat", "exFAT file system";
    /// BitLocker.
    Bitlocker = "bitlocker", "BitLocker volume";
    /// bcache.
    Bcache = "bcache", "bcache device";
    /// bcachefs.
    Bcachefs = "bcachefs", "bcachefs file system";
    /// ISO 9660.
    Iso9660 = "iso9660", "ISO 9660 file system";
    /// SquashFS.
    Squashfs = "squashfs", "SquashFS file system";
    /// EROFS.
    Erofs = "erofs", "EROFS file system";
    /// ReiserFS.
    Reiserfs = "reiserfs", "ReiserFS file system";
    /// JFS.
    Jfs = "jfs", "JFS file system";
    /// HFS+.
    Hfsplus = "hfsplus", "HFS+ file system";
    /// APFS.
    Apfs = "apfs", "APFS container";
    /// GFS2.
    Gfs2 = "gfs2", "GFS2 file system";
    /// OCFS2.
    Ocfs2 = "ocfs2", "OCFS2 file system";
    /// VMFS.
    Vmfs = "vmfs", "VMFS volume member";
    /// Ceph BlueStore.
    Bluestore = "bluestore", "Ceph BlueStore device";
    /// Stratis.
    Stratis = "stratis", "Stratis pool member";
    /// Intel firmware RAID (IMSM).
    Isw = "isw", "Intel firmware RAID member";
    /// SNIA DDF RAID.
    Ddf = "ddf", "DDF RAID member";
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A word that names no signature.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a signature; allowed: {allowed}", allowed = names().join(" "))]
pub struct UnknownSignature(pub String);

/// Every name that `--overwrite` takes.
#[must_use]
pub fn names() -> Vec<&'static str> {
    Signature::ALL
        .iter()
        .map(|signature| signature.name())
        .collect()
}

/// Reads the word of `--overwrite`: an exact name, or `ext` and `luks` for all versions of these.
///
/// # Errors
/// [`UnknownSignature`].
pub fn parse_overwrite(word: &str) -> Result<Vec<Signature>, UnknownSignature> {
    match word {
        "ext" => return Ok(vec![Signature::Ext2, Signature::Ext3, Signature::Ext4]),
        "luks" => return Ok(vec![Signature::Luks1, Signature::Luks2]),
        _ => {}
    }
    let known = Signature::ALL
        .iter()
        .find(|signature| signature.name().eq_ignore_ascii_case(word));
    match known {
        Some(signature) => Ok(vec![*signature]),
        None => Err(UnknownSignature(word.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back_and_near_misses_are_not() {
        for signature in Signature::ALL {
            assert_eq!(parse_overwrite(signature.name()), Ok(vec![*signature]));
        }
        assert_eq!(parse_overwrite("GPT"), Ok(vec![Signature::Gpt]));
        for bad in ["", "all", "ext5", "gp", "gpt,mbr", "gpt "] {
            assert_eq!(parse_overwrite(bad), Err(UnknownSignature(bad.to_owned())));
        }
    }

    #[test]
    fn families_name_their_versions() {
        assert_eq!(
            parse_overwrite("luks"),
            Ok(vec![Signature::Luks1, Signature::Luks2])
        );
        assert_eq!(parse_overwrite("ext").map(|found| found.len()), Ok(3));
    }
}
