//! Labels of file systems, volume managers, RAID sets and partition tables, with their offsets.
//! libblkid (util-linux 2.42) recognises the same labels.
//!
//! Labels are only used to name the data. Plimsoll rejects a device on which a sampled byte is not
//! zero, even if it finds no known label.

/// Position of a label on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LabelPosition {
    /// The label is at this offset in bytes from the start of the device.
    Start(u64),
    /// The label is at this distance in bytes from the end of the device.
    End(u64),
    /// The label is at this distance in bytes from the end of the device. The size of the device is
    /// first rounded down to a multiple of the second value, as Linux MD does for its superblocks.
    Rounded(u64, u64),
}

/// Label that is always at the same position.
pub(super) struct Label {
    pub name: &'static str,
    pub position: LabelPosition,
    pub bytes: &'static [u8],
}

impl LabelPosition {
    /// Returns the byte offset of the position on a device of this size. Returns `None` if the
    /// device is too small.
    pub fn offset_bytes(self, size_bytes: u64) -> Option<u64> {
        match self {
            Self::Start(offset) => (offset < size_bytes).then_some(offset),
            Self::End(before) => size_bytes.checked_sub(before),
            Self::Rounded(before, unit) => (size_bytes / unit * unit).checked_sub(before),
        }
    }
}

const fn start(name: &'static str, at: u64, bytes: &'static [u8]) -> Label {
    Label { name, position: LabelPosition::Start(at), bytes }
}

const fn end(name: &'static str, before: u64, bytes: &'static [u8]) -> Label {
    Label { name, position: LabelPosition::End(before), bytes }
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

const APFS: &str = "an APFS container";
const BCACHE: &str = "a bcache device";
const BCACHEFS: &str = "a bcachefs file system";
const BEFS: &str = "a BeFS file system";
const BITLOCKER: &str = "a BitLocker volume";
const BSD: &str = "a BSD disklabel";
const BTRFS: &str = "a Btrfs file system";
const CRAMFS: &str = "a cramfs file system";
const DASD: &str = "a DASD volume";
const DDF: &str = "a member of a RAID set (DDF)";
const DRBD: &str = "a DRBD device";
const EXT: &str = "an ext2, ext3 or ext4 file system";
const F2FS: &str = "an F2FS file system";
const FAT: &str = "a FAT file system";
const GPT: &str = "a partition table (GPT)";
const GPT_BACKUP: &str = "a partition table (the backup of a GPT)";
const HFS: &str = "an HFS or HFS+ file system";
const HIBERNATION: &str = "a hibernated system";
const HIGHPOINT: &str = "a member of a RAID set (HighPoint)";
const ISO9660: &str = "an ISO 9660 file system";
const LUKS: &str = "a LUKS volume";
const LVM: &str = "an LVM volume";
const MD: &str = "a member of a RAID set (Linux MD)";
const MINIX: &str = "a Minix file system";
const NTFS: &str = "an NTFS file system";
const OCFS2: &str = "an OCFS2 file system";
const PROMISE: &str = "a member of a RAID set (Promise)";
const REISERFS: &str = "a ReiserFS file system";
const SCOUTFS: &str = "a ScoutFS file system";
const SQUASHFS: &str = "a SquashFS file system";
const STRATIS: &str = "a Stratis pool";
const SWAP: &str = "swap space";
const SYSV: &str = "a System V file system";
const UDF: &str = "a UDF file system";
const UFS: &str = "a UFS file system";
const VXFS: &str = "a VxFS file system";
const XFS: &str = "an XFS file system";
const ZFS: &str = "a ZFS pool";

/// Byte 64 of a Btrfs superblock is the start of the magic `_BHRfS_M`.
const BTRFS_MAGIC: &[u8] = b"_BHRfS_M";
/// Offsets at which Btrfs stores its backup superblocks (btrfs(5), "superblock").
pub(super) const BTRFS_MIRRORS: [u64; 3] = [64 << 20, 256 << 30, 1 << 50];

/// Magic number of an uberblock. Uberblocks are in the second half of a 256 KiB ZFS label. The byte
/// order depends on the host that wrote the label.
const ZFS_LITTLE: &[u8] = b"\x0c\xb1\xba\0";
const ZFS_BIG: &[u8] = b"\0\xba\xb1\x0c";

const MD_MAGIC: &[u8] = b"\xfc\x4e\x2b\xa9";

/// All known labels. If several labels match, the first one in this list is reported.
pub(super) const LABELS: &[Label] = &[
    start(LVM, 0x218, b"LVM2 001"),
    start(LVM, 0x18, b"LVM2 001"),
    start(LVM, KIB + 0x18, b"LVM2 001"),
    start(LVM, KIB + 0x218, b"LVM2 001"),
    start(LVM, 512, b"LABELONE"),
    start("an LVM snapshot", 0, b"SnAp"),
    start("a dm-verity device", 0, b"verity\0\0"),
    start("a dm-integrity device", 0, b"integrt\0"),
    start("a VDO volume", 0, b"dmvdo001"),
    start(STRATIS, 512 + 4, b"!Stra0tis\x86\xff\x02^\x41rh"),
    start(STRATIS, 9 * 512 + 4, b"!Stra0tis\x86\xff\x02^\x41rh"),
    start(LUKS, 0, b"LUKS\xba\xbe"),
    start(LUKS, 16 * KIB, b"SKUL\xba\xbe"),
    start(LUKS, 32 * KIB, b"SKUL\xba\xbe"),
    start(LUKS, 64 * KIB, b"SKUL\xba\xbe"),
    start(LUKS, 128 * KIB, b"SKUL\xba\xbe"),
    start(LUKS, 256 * KIB, b"SKUL\xba\xbe"),
    start(LUKS, 512 * KIB, b"SKUL\xba\xbe"),
    start(LUKS, MIB, b"SKUL\xba\xbe"),
    start(LUKS, 2 * MIB, b"SKUL\xba\xbe"),
    start(LUKS, 4 * MIB, b"SKUL\xba\xbe"),
    start(BITLOCKER, 3, b"-FVE-FS-"),
    start(BITLOCKER, 0, b"\xeb\x58\x90MSWIN4.1"),
    start("a Ceph BlueStore device", 0, b"bluestore block device"),
    start(
        BCACHE,
        4 * KIB + 24,
        b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81",
    ),
    start(
        BCACHEFS,
        4 * KIB + 24,
        b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef",
    ),
    start(
        BCACHEFS,
        2 * MIB + 24,
        b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef",
    ),
    end(BCACHEFS, MIB - 24, b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"),
    start(MD, 0, MD_MAGIC),
    start(MD, 4 * KIB, MD_MAGIC),
    Label { name: MD, position: LabelPosition::Rounded(8 * KIB, 4 * KIB), bytes: MD_MAGIC },
    Label { name: MD, position: LabelPosition::Rounded(64 * KIB, 64 * KIB), bytes: MD_MAGIC },
    Label {
        name: MD,
        position: LabelPosition::Rounded(64 * KIB, 64 * KIB),
        bytes: b"\xa9\x2b\x4e\xfc",
    },
    end(DDF, 512, b"\xde\x11\xde\x11"),
    end(DDF, 257 * 512, b"\xde\x11\xde\x11"),
    end("a member of a RAID set (Intel)", 1024, b"Intel Raid ISM Cfg Sig. "),
    end("a member of a RAID set (LSI)", 512, b"$XIDE$"),
    end("a member of a RAID set (Nvidia)", 1024, b"NVIDIA  "),
    end("a member of a RAID set (Adaptec)", 512, b"\x37\xfc\x4d\x1e"),
    end("a member of a RAID set (JMicron)", 512, b"JM"),
    end("a member of a RAID set (Silicon Image)", 512 - 0x60, b"\0\0\0\x2f"),
    end("a member of a RAID set (VIA)", 512, b"\x55\xaa"),
    end(PROMISE, 63 * 512, b"Promise Technology, Inc."),
    end(PROMISE, 256 * 512, b"Promise Technology, Inc."),
    start(HIGHPOINT, 4640, b"\xf0\x16\x78\x5a"),
    start(HIGHPOINT, 4640, b"\xfd\x16\x78\x5a"),
    end(HIGHPOINT, 11 * 512, b"\xf3\x16\x78\x5a"),
    end(HIGHPOINT, 11 * 512, b"\xfd\x16\x78\x5a"),
    end(DRBD, 4 * KIB - 60, b"\x83\x74\x02\x6b"),
    end(DRBD, 4 * KIB - 60, b"\x83\x74\x02\x6c"),
    end(DRBD, 4 * KIB - 60, b"\x83\x74\x02\x6d"),
    start("a DRBD Manage volume", 0, b"$DRBDmgr=q"),
    start("a DRBD Proxy log", 0, b"DRBDdlh*"),
    start("an Oracle ASM disk", 32, b"ORCLDISK"),
    start(ZFS, 128 * KIB, ZFS_LITTLE),
    start(ZFS, 128 * KIB, ZFS_BIG),
    start(ZFS, 384 * KIB, ZFS_LITTLE),
    start(ZFS, 384 * KIB, ZFS_BIG),
    Label { name: ZFS, position: LabelPosition::Rounded(384 * KIB, 256 * KIB), bytes: ZFS_LITTLE },
    Label { name: ZFS, position: LabelPosition::Rounded(384 * KIB, 256 * KIB), bytes: ZFS_BIG },
    Label { name: ZFS, position: LabelPosition::Rounded(128 * KIB, 256 * KIB), bytes: ZFS_LITTLE },
    Label { name: ZFS, position: LabelPosition::Rounded(128 * KIB, 256 * KIB), bytes: ZFS_BIG },
    start("a VMFS file system", 2 * MIB, b"\x5e\xf1\xab\x2f"),
    start("a VMFS volume", MIB, b"\x0d\xd0\x01\xc0"),
    start(BTRFS, 64 * KIB + 64, BTRFS_MAGIC),
    start(BTRFS, BTRFS_MIRRORS[0] + 64, BTRFS_MAGIC),
    start(BTRFS, BTRFS_MIRRORS[1] + 64, BTRFS_MAGIC),
    start(BTRFS, BTRFS_MIRRORS[2] + 64, BTRFS_MAGIC),
    start(XFS, 0, b"XFSB"),
    start("an XFS log", 0, b"\xfe\xed\xba\xbe"),
    start(APFS, 32, b"NXSB"),
    start(NTFS, 3, b"NTFS    "),
    end(NTFS, 512 - 3, b"NTFS    "),
    start("a ReFS file system", 0, b"\0\0\0ReFS\0"),
    start("an exFAT file system", 3, b"EXFAT   "),
    start(FAT, 0x52, b"FAT32   "),
    start(FAT, 0x52, b"MSWIN"),
    start(FAT, 0x36, b"FAT16   "),
    start(FAT, 0x36, b"FAT12   "),
    start(FAT, 0x36, b"FAT     "),
    start(FAT, 0x36, b"MSDOS"),
    start(ISO9660, 32 * KIB + 1, b"CD001"),
    start(ISO9660, 32 * KIB + 9, b"CDROM"),
    start(UDF, 32 * KIB + 1, b"BEA01"),
    start(UDF, 32 * KIB + 1, b"BOOT2"),
    start(UDF, 32 * KIB + 1, b"CDW02"),
    start(UDF, 32 * KIB + 1, b"NSR02"),
    start(UDF, 32 * KIB + 1, b"NSR03"),
    start(UDF, 32 * KIB + 1, b"TEA01"),
    start(F2FS, KIB, b"\x10\x20\xf5\xf2"),
    start(F2FS, 5 * KIB, b"\x10\x20\xf5\xf2"),
    start("an EROFS file system", KIB, b"\xe2\xe1\xf5\xe0"),
    start("a NILFS2 file system", KIB + 6, b"\x34\x34"),
    Label {
        name: "a NILFS2 file system",
        position: LabelPosition::Rounded(4 * KIB - 6, 512),
        bytes: b"\x34\x34",
    },
    start("a GFS file system", 64 * KIB, b"\x01\x16\x19\x70"),
    start(SCOUTFS, 64 * KIB + 4, b"\x8b\x42\x3c\x10"),
    start("a JFS file system", 32 * KIB, b"JFS1"),
    start("an OCFS file system", 8 * KIB, b"OracleCFS"),
    start(OCFS2, KIB, b"OCFSV2"),
    start(OCFS2, 2 * KIB, b"OCFSV2"),
    start(OCFS2, 4 * KIB, b"OCFSV2"),
    start(OCFS2, 8 * KIB, b"OCFSV2"),
    start(REISERFS, 64 * KIB + 0x34, b"ReIsEr2Fs"),
    start(REISERFS, 64 * KIB + 0x34, b"ReIsEr3Fs"),
    start(REISERFS, 64 * KIB + 0x34, b"ReIsErFs"),
    start(REISERFS, 8 * KIB + 0x34, b"ReIsErFs"),
    start(REISERFS, 8 * KIB + 20, b"ReIsErFs"),
    start("a Reiser4 file system", 64 * KIB, b"ReIsEr4"),
    start(SQUASHFS, 0, b"hsqs"),
    start(SQUASHFS, 0, b"sqsh"),
    start(CRAMFS, 0, b"\x45\x3d\xcd\x28"),
    start(CRAMFS, 0, b"\x28\xcd\x3d\x45"),
    start("a romfs file system", 0, b"-rom1fs-"),
    start("a UBI volume", 0, b"UBI#"),
    start("a UBIFS file system", 0, b"\x31\x18\x10\x06"),
    start("a zonefs file system", 0, b"SFOZ"),
    start("an exfs file system", 0, b"EXFS"),
    start("a UnixWare BFS file system", 0, b"\xce\xfa\xad\x1b"),
    start("an mpool", 0, b"\x6d\x70\x6f\x6f\x6c\x44\x65\x76"),
    start("a NetWare volume", 4 * KIB, b"SPB5"),
    start("a FileVault volume", 88, b"CS"),
    start(HIBERNATION, 0, b"\xed\xc3\x02\xe9\x98\x56\xe5\x0c"),
    start(BEFS, 32, b"BFS1"),
    start(BEFS, 32, b"1SFB"),
    start(BEFS, 512 + 32, b"BFS1"),
    start(BEFS, 512 + 32, b"1SFB"),
    start("an HPFS file system", 8 * KIB, b"\x49\xe8\x95\xf9"),
    start(VXFS, KIB, b"\xf5\xfc\x01\xa5"),
    start(VXFS, 8 * KIB, b"\xa5\x01\xfc\xf5"),
    start(SYSV, 2 * KIB, b"\x2b\x55\x44"),
    start(SYSV, 2 * KIB, b"\x44\x55\x2b"),
    start(UFS, 8 * KIB + 0x55c, b"\x54\x19\x01\0"),
    start(UFS, 8 * KIB + 0x55c, b"\x19\x01\x54\x19"),
    start(UFS, 64 * KIB + 0x55c, b"\x19\x01\x54\x19"),
    start(UFS, 256 * KIB + 0x55c, b"\x19\x01\x54\x19"),
    start(SWAP, 0xff6, b"SWAPSPACE2"),
    start(SWAP, 0xff6, b"SWAP-SPACE"),
    start(SWAP, 0x1ff6, b"SWAPSPACE2"),
    start(SWAP, 0x3ff6, b"SWAPSPACE2"),
    start(SWAP, 0x7ff6, b"SWAPSPACE2"),
    start(SWAP, 0xfff6, b"SWAPSPACE2"),
    start(HIBERNATION, 0xff6, b"S1SUSPEND"),
    start(HIBERNATION, 0xff6, b"S2SUSPEND"),
    start(HIBERNATION, 0xff6, b"ULSUSPEND"),
    start(HIBERNATION, 0xff6, b"LINHIB0001"),
    start(GPT, 512, b"EFI PART"),
    start(GPT, 4 * KIB, b"EFI PART"),
    end(GPT_BACKUP, 512, b"EFI PART"),
    end(GPT_BACKUP, 4 * KIB, b"EFI PART"),
    start(BSD, 512, b"\x57\x45\x56\x82"),
    start(BSD, 64, b"\x57\x45\x56\x82"),
    start("a partition table (SGI)", 0, b"\x0b\xe5\xa9\x41"),
    start("a partition table (Sun)", 508, b"\xda\xbe"),
    start("a partition table (AIX)", 0, b"\xc9\xc2\xd4\xc1"),
    start(DASD, 4, b"\xe5\xd6\xd3\xf1"),
    start(DASD, 0, b"LNX1"),
    start(DASD, 0, b"CMS1"),
    start(EXT, KIB + 56, b"\x53\xef"),
    start(HFS, KIB, b"H+"),
    start(HFS, KIB, b"HX"),
    start(HFS, KIB, b"BD"),
    end(HFS, KIB, b"H+"),
    end(HFS, KIB, b"HX"),
    start(MINIX, KIB + 0x10, b"\x7f\x13"),
    start(MINIX, KIB + 0x10, b"\x8f\x13"),
    start(MINIX, KIB + 0x10, b"\x68\x24"),
    start(MINIX, KIB + 0x10, b"\x78\x24"),
    start(MINIX, KIB + 0x18, b"\x5a\x4d"),
    start("an LVM1 volume", 0, b"HM\x01\0"),
    start("a partition table (Mac)", 0, b"\x45\x52"),
    start("a partition table or boot sector", 510, b"\x55\xaa"),
];
