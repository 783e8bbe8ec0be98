package balancer

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// describeGo says of the Go constants what layout.describe() says in Lua.
func describeGo() string {
	lines := []string{
		fmt.Sprintf("crumbs size %d", crumbHeader), fmt.Sprintf("slot size %d", CrumbSize),
		fmt.Sprintf("ledger size %d", ledgerHeader), fmt.Sprintf("bank size %d", bankHeader),
		fmt.Sprintf("entry size %d", entrySize),
		fmt.Sprintf("changes size %d", changesAreasAt+4), fmt.Sprintf("change size %d", changeSlot),
	}
	for name, at := range map[string]int{
		"crumbs magic": crumbsMagicAt, "crumbs layout": crumbsLayoutAt, "crumbs header_size": crumbsHeaderSizeAt,
		"crumbs slot_size": crumbsSlotSizeAt, "crumbs slots": crumbsSlotsAt,
		"slot pid": slotPIDAt, "slot phase": slotPhaseAt, "slot sequence": slotSequenceAt, "slot version": slotVersionAt,
		"slot digest": slotDigestAt, "slot upstream": slotUpstreamAt, "slot picker": slotPickerAt,
		"changes magic": changesMagicAt, "changes layout": changesLayoutAt, "changes area_size": changesAreaSizeAt,
		"changes slot_size": changesSlotSizeAt, "changes areas": changesAreasAt,
		"change size": changeSizeAt, "change version": changeVersionAt, "change from": changeFromAt, "change at": changeAtAt,
		"change digest": changeDigestAt, "change upstream": changeUpstreamAt, "change by": changeByAt, "change text": changeTextAt,
		"ledger magic": ledgerMagicAt, "ledger layout": ledgerLayoutAt, "ledger sequence": ledgerSequenceAt,
		"ledger bank_offset": ledgerBankOffsetAt, "ledger bank_size": ledgerBankSizeAt,
		"ledger entry_size": ledgerEntrySizeAt, "ledger capacity": ledgerCapacityAt,
		"bank crc": bankCRCAt, "bank count": bankCountAt, "bank written": bankWrittenAt,
		"entry kind": entryKindAt, "entry flags": entryFlagsAt, "entry version": entryVersionAt,
		"entry until": entryUntilAt, "entry since": entrySinceAt, "entry digest": entryDigestAt,
		"entry upstream": entryUpstreamAt, "entry subject": entrySubjectAt, "entry id": entryIDAt,
		"entry origin": entryOriginAt, "entry reason": entryReasonAt,
	} {
		lines = append(lines, fmt.Sprintf("%s %d", name, at))
	}
	for name, value := range map[string]any{
		"LAYOUT": Layout, "CRUMB_MAGIC": crumbMagic, "CRUMB_HEADER": crumbHeader, "CRUMB_SLOT": CrumbSize,
		"CRUMB_SLOTS": crumbSlots, "CRUMB_SIZE": crumbsSize, "PHASE_IDLE": phaseIdle, "PHASE_BUILD": phaseBuild,
		"PHASE_PICK": phasePick, "LEDGER_MAGIC": ledgerMagic, "LEDGER_HEADER": ledgerHeader,
		"LEDGER_BANK_OFFSET": bankOffset, "LEDGER_BANK_HEADER": bankHeader, "LEDGER_BANK_SIZE": bankSize,
		"LEDGER_ENTRY": entrySize, "LEDGER_CAPACITY": ledgerCapacity, "LEDGER_SIZE": ledgerSize,
		"CHANGES_MAGIC": changesMagic, "CHANGES_HEADER": changesHeader, "CHANGE_SLOT": changeSlot,
		"CHANGE_SLOTS": changeSlots, "CHANGE_AREA": changeArea, "CHANGE_TEXT": changeText, "CHANGES_SIZE": changesSize,
		"KIND_VERSION": KindVersion, "KIND_PEER": KindPeer, "KIND_ROUTE": KindRoute, "NAME_MAX": nameMax,
	} {
		if kind, ok := value.(Kind); ok {
			value = uint32(kind)
		}
		lines = append(lines, fmt.Sprintf("const %s %v", name, value))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}

func TestLayout(t *testing.T) {
	p := startProxy(t, proxyOptions{init: `
		local f = io.open("DIR/layout", "w")
		f:write(require("resty.spinguard.layout").describe())
		f:close()`})
	b, err := os.ReadFile(filepath.Join(p.dir, "layout"))
	if err != nil {
		t.Fatal(err)
	}
	if want := describeGo(); string(b) != want {
		t.Errorf("Lua says\n%s\nGo says\n%s", b, want)
	}
}

// TestFormatsPage holds the tables of docs/formats.md against the layout.
func TestFormatsPage(t *testing.T) {
	b, err := os.ReadFile("../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	table := regexp.MustCompile(`(?s)\| (\w+) offset \| size \| field \|\n.*?\n\n`)
	row := regexp.MustCompile(`(?m)^\| (\d+) \|`)
	got := map[string]bool{}
	tables := table.FindAllStringSubmatch(string(b), -1)
	names := []string{"crumbs", "slot", "changes", "change", "ledger", "bank", "entry"}
	if len(tables) != len(names) {
		t.Fatalf("%d tables, want %d", len(tables), len(names))
	}
	for i, m := range tables {
		for _, r := range row.FindAllStringSubmatch(m[0], -1) {
			got[names[i]+" "+r[1]] = true
		}
	}
	for line := range strings.Lines(describeGo()) {
		f := strings.Fields(line)
		if f[0] != "const" && f[1] != "size" && !got[f[0]+" "+f[2]] {
			t.Errorf("%s of %s at offset %s is not on the page", f[1], f[0], f[2])
		}
	}
}
