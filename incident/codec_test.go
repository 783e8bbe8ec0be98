package incident

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
)

func TestGoldenJSON(t *testing.T) {
	data, err := Encode(gcdNaN())
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "gcd-nan.json", data)
}

// The names of the contract in docs/architecture.md.
func TestJSONNames(t *testing.T) {
	data, err := Encode(&Incident{ID: gcdNaN().ID})
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	for _, k := range strings.Fields("id origin proxy kind worker mode verdict reason story began ended timeline events evidence workers_stuck workers_evicted samples") {
		if _, ok := m[k]; !ok {
			t.Errorf("%s is missing", k)
		}
	}
	timeline := m["timeline"].(map[string]any)
	for _, k := range strings.Fields("suspected confirmed captured quarantined evicted recovered") {
		if v, ok := timeline[k]; !ok || v != nil {
			t.Errorf("timeline.%s is %v, want null", k, v)
		}
	}
	for _, k := range strings.Fields("frames values") {
		if v, ok := m["evidence"].(map[string]any)[k].([]any); !ok || len(v) != 0 {
			t.Errorf("evidence.%s is %v, want an empty list", k, v)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	want := prepared(gcdNaN())
	data, err := Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestDecodeNewer(t *testing.T) {
	inc, err := Decode(strings.NewReader(`{"id": "20261130T015749.123Z-0badc0", "moon": "full", "evidence": {"tide": [1]}, "timeline": {"foreseen": -5}}`))
	if err != nil || inc.ID == "" {
		t.Errorf("%v %v", inc, err)
	}
}

func TestDecodeErrors(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "cut": `{"id": "20261130`, "list": "[]", "no id": "{}", "bad id": `{"id": "../x"}`,
		"time": `{"id": "20261130T015749.123Z-0badc0", "began": 7}`, "big": strings.Repeat(" ", maxJSON+1),
	} {
		if _, err := Decode(strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), "incident.json: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBounds(t *testing.T) {
	huge := strings.Repeat("é", 1<<20)
	inc := gcdNaN()
	inc.Reason, inc.Proxy, inc.Evidence.Request, inc.Evidence.Host = huge, huge, huge+"\xff", "\xff\xfe"
	inc.Numbers.CPUShare = math.Inf(1)
	inc.Evidence.Lines = []Line{{huge, math.NaN()}}
	inc.Log = make([]string, 100_000)
	inc.Evidence.Frames = make([]string, 100_000)
	inc.Evidence.Stack = make([]Frame, 100_000)
	data, err := Encode(inc)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > 200_000 {
		t.Errorf("incident.json of %d bytes", len(data))
	}
	if len(inc.Reason) != len(huge) || len(inc.Log) != 100_000 {
		t.Error("Encode changed the incident that it was given")
	}
}

func FuzzDecode(f *testing.F) {
	data, err := Encode(gcdNaN())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	if golden, err := os.ReadFile("testdata/gcd-nan.json"); err == nil {
		f.Add(golden)
	}
	f.Add([]byte(`{"id":"20261130T015749.123Z-0badc0","evidence":{"hot":-1,"stack":[{}]},"lock":{"victims":null},"blocked":{},"change":{"text":"+\n-"}}`))
	f.Add([]byte(`{"id":"20261130T015749.123Z-0badc0","timeline":{"suspected":-9223372036854775808,"recovered":9223372036854775807}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		inc, err := Decode(bytes.NewReader(data))
		if err != nil {
			return
		}
		again, err := Encode(inc)
		if err != nil {
			return // a year that JSON cannot hold
		}
		if _, err := Decode(bytes.NewReader(again)); err != nil {
			t.Fatalf("not readable after a round trip: %v", err)
		}
		var b bytes.Buffer
		if err := WriteReport(&b, inc, ReportOptions{}); err != nil {
			t.Fatal(err)
		}
	})
}
