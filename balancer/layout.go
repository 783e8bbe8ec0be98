package balancer

// The bytes of what is shared. resty.spinguard.layout says the same in Lua,
// docs/formats.md in words; a test holds them against each other.
const (
	Layout = 1

	crumbMagic  = "SPINCRB1"
	crumbHeader = 128
	CrumbSize   = 128 // bytes of one slot
	crumbSlots  = 255
	crumbsSize  = crumbHeader + CrumbSize*crumbSlots

	changesMagic  = "SPINCHG1"
	changesHeader = 4096
	changeSlot    = 1024
	changeSlots   = 16
	changeArea    = changeSlots * changeSlot
	changeText    = 848
	changesSize   = changesHeader + crumbSlots*changeArea

	ledgerMagic    = "SPINLDG1"
	ledgerHeader   = 64
	bankOffset     = 4096
	bankHeader     = 64
	bankSize       = 49152
	entrySize      = 384
	ledgerCapacity = 127
	ledgerSize     = bankOffset + 2*bankSize

	nameMax = 63

	phaseIdle  = 0
	phaseBuild = 1
	phasePick  = 2
)

// Offsets in the ledger's header.
const (
	ledgerMagicAt      = 0
	ledgerLayoutAt     = 8
	ledgerSequenceAt   = 12
	ledgerBankOffsetAt = 16
	ledgerBankSizeAt   = 20
	ledgerEntrySizeAt  = 24
	ledgerCapacityAt   = 28
)

// Offsets in a bank's header.
const (
	bankCRCAt     = 0
	bankCountAt   = 4
	bankWrittenAt = 8
)

// Offsets in an entry; the sizes of the texts follow from the next offset.
const (
	entryKindAt     = 0
	entryFlagsAt    = 4
	entryVersionAt  = 8
	entryUntilAt    = 16
	entrySinceAt    = 24
	entryDigestAt   = 32
	entryUpstreamAt = 64
	entrySubjectAt  = 128
	entryIDAt       = 224
	entryOriginAt   = 264
	entryReasonAt   = 320
)

// Offsets in the header of the changes.
const (
	changesMagicAt    = 0
	changesLayoutAt   = 8
	changesAreaSizeAt = 12
	changesSlotSizeAt = 16
	changesAreasAt    = 20
)

// Offsets in a slot of a change.
const (
	changeSizeAt     = 0
	changeVersionAt  = 8
	changeFromAt     = 16
	changeAtAt       = 24
	changeDigestAt   = 32
	changeUpstreamAt = 48
	changeByAt       = 112
	changeTextAt     = 176
)

// Offsets in the crumbs' header.
const (
	crumbsMagicAt      = 0
	crumbsLayoutAt     = 8
	crumbsHeaderSizeAt = 12
	crumbsSlotSizeAt   = 16
	crumbsSlotsAt      = 20
)

// Offsets in a crumb slot.
const (
	slotPIDAt      = 0
	slotPhaseAt    = 4
	slotSequenceAt = 8
	slotVersionAt  = 16
	slotDigestAt   = 24
	slotUpstreamAt = 40
	slotPickerAt   = 104
)
