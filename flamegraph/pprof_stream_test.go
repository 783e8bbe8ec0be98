package flamegraph

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

// unpacked is the profile as its file holds it.
func unpacked(t testing.TB, p *profile.Profile) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := p.WriteUncompressed(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// sameAsParsed checks that the stream's reader makes of a file what the
// library and the reader of parsed profiles make of it.
func sameAsParsed(t testing.TB, data []byte) {
	t.Helper()
	in, err := profile.ParseUncompressed(data)
	if err == nil {
		err = in.CheckValid()
	}
	var want *Profile
	if err == nil {
		want, err = FromPprof(in, "test", "")
	}
	got, gotErr := Read(bytes.NewReader(data), "test")
	if (err == nil) != (gotErr == nil) {
		t.Fatalf("from the stream: error %v; from the parsed profile: %v", gotErr, err)
	}
	if err != nil {
		return
	}
	if a, b := describeProfile(t, got), describeProfile(t, want); a != b {
		t.Fatalf("from the stream:\n%s\nfrom the parsed profile:\n%s", a, b)
	}
}

// describeProfile is all of a profile as text: pprof's own, with labels.
func describeProfile(t testing.TB, p *Profile) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.WritePprof(&b); err != nil {
		t.Fatal(err)
	}
	again, err := profile.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	return again.String()
}

func TestStreamReadsAsTheLibraryDoes(t *testing.T) {
	inlined := agentProfile()
	inlined.Location[1].Line = []profile.Line{
		{Function: inlined.Function[1], Line: 3}, {Function: inlined.Function[0], Line: 4},
	}
	labels := agentProfile()
	labels.Sample[0].NumLabel = map[string][]int64{"bytes": {7, 9}, "thread": {12}}
	labels.Sample[0].NumUnit = map[string][]string{"bytes": {"b", "kb"}}
	labels.Sample[1].Label["upstream"] = []string{"media", "b\x00d"}
	deep := agentProfile()
	for range maxDepth {
		deep.Sample[0].Location = append(deep.Sample[0].Location, deep.Location[2])
	}
	other := agentProfile()
	for i, l := range other.Location {
		l.ID = 1<<40 + uint64(i)*977
	}
	now, errNow := profile.ParseUncompressed(unpacked(t, agentProfile()))
	base, errBase := profile.ParseUncompressed(unpacked(t, agentProfile()))
	if err := errors.Join(errNow, errBase); err != nil {
		t.Fatal(err)
	}
	difference, err := subtract(now, base)
	if err != nil {
		t.Fatal(err)
	}
	empty := agentProfile()
	empty.Sample = nil
	for name, p := range map[string]*profile.Profile{
		"agent": agentProfile(), "inlined": inlined, "labels": labels, "deep": deep,
		"other ids": other, "difference": difference, "empty": empty,
	} {
		t.Run(name, func(t *testing.T) { sameAsParsed(t, unpacked(t, p)) })
	}
}

// TestStreamTakesUnpackedNumbers: writers may give each number a tag of its
// own, and fields in any order.
func TestStreamTakesUnpackedNumbers(t *testing.T) {
	data := unpacked(t, agentProfile())
	sample := []byte{sampleField<<3 | 2, 10, 2 << 3, 5, 1 << 3, 3, 1 << 3, 2, 1 << 3, 1, 2 << 3, 50}
	sameAsParsed(t, slices.Concat(data, sample))
	sameAsParsed(t, slices.Concat(sample[:0], []byte{0x0a, 4, 8, 1, 16, 2, 0x0a, 4, 8, 3, 16, 4}, sample, data[12:]))
	p, err := Read(bytes.NewReader(slices.Concat(data, sample)), "test")
	if err != nil || p.Total() != 180e6+50 {
		t.Errorf("%v, total %d", err, p.Total())
	}
}

func TestStreamErrors(t *testing.T) {
	data := unpacked(t, agentProfile())
	for _, c := range []struct{ add, want string }{
		{"\x12\x05\x08\x01\x10\x01\x10", "sample 6: malformed message"},
		{"\x12\x04\x08\x01\x10\x01", "sample 6: 1 values, others have 2"},
		{"\x12\x06\x08\x63\x10\x01\x10\x01", "location 99: named by a sample, but not in the profile"},
		{"\x12\x0c\x08\x01\x10\x01\x10\x01\x1a\x04\x08\x01\x10\x7f", "label: text 127 of"},
		{"\x12\x80\x80\x80\x80\x01", "sample of 268435456 bytes"},
		{"\x12\x20\x08", "unexpected EOF"},
		{"\x4a", "unexpected EOF"},
		{"\x0b", "field 1: unknown wire type 3"},
	} {
		_, err := Read(strings.NewReader(string(data)+c.add), "bad.pb")
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "bad.pb: ") {
			t.Errorf("%q: error %v, want %q", c.add, err, c.want)
		}
	}
}
