package symbol

import "debug/gosym"

const maxPCLineTable = 128 << 20

// goTable names the functions of a Go program, whose .gopclntab survives
// stripping.
type goTable struct{ table *gosym.Table }

// goName returns the Go function at a vaddr, or "".
func (i *Image) goName(vaddr uint64) string {
	i.goOnce.Do(func() { guard(func() { i.goTab = i.file.goTable() }) })
	if i.goTab.table == nil {
		return ""
	}
	f := i.goTab.table.PCToFunc(vaddr)
	if f == nil || vaddr >= f.End {
		return ""
	}
	return f.Name
}

func (f *elfFile) goTable() goTable {
	s, ok := f.goSection()
	text, haveText := f.section(".text")
	if !ok || !haveText || s.Size > maxPCLineTable {
		return goTable{}
	}
	raw, err := f.sectionData(s)
	if err != nil {
		return goTable{}
	}
	t, err := gosym.NewTable(nil, gosym.NewLineTable(raw, text.Addr))
	if err != nil {
		return goTable{}
	}
	return goTable{t}
}

func (f *elfFile) goSection() (section, bool) {
	if s, ok := f.section(".gopclntab"); ok {
		return s, true
	}
	return f.section(".data.rel.ro.gopclntab")
}

// IsGo says that the image was built by the Go compiler, which keeps frame
// pointers and writes no .eh_frame.
func (i *Image) IsGo() bool {
	_, ok := i.file.goSection()
	return ok
}
