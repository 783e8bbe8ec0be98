package export

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
	collector "go.opentelemetry.io/proto/slim/otlp/collector/profiles/v1development"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/slim/otlp/profiles/v1development"
	resource "go.opentelemetry.io/proto/slim/otlp/resource/v1"
	"google.golang.org/protobuf/proto"

	"github.com/spinguard/spinguard/spool"
)

// toOTLP posts to /v1development/profiles, in protobuf over HTTP.
func (x *Exporter) toOTLP() sender {
	p := spool.NewPoster(x.o.Authorization)
	url := strings.TrimRight(x.o.OTLP, "/") + "/v1development/profiles"
	return func(ctx context.Context, h head, pprof []byte) error {
		body, err := encodeOTLP(h, pprof)
		if err != nil {
			return &spool.ReplyError{Final: true, Text: "profile on disk: " + err.Error()}
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return &spool.ReplyError{Final: true, Text: "the URL can't be used"}
		}
		r.Header.Set("Content-Type", "application/x-protobuf")
		r.Header.Set("Content-Encoding", "gzip")
		answer, err := p.Ask(r)
		if err != nil {
			return err
		}
		return partial(answer)
	}
}

// partial finds the refusal in an answer that is a success otherwise.
func partial(answer []byte) error {
	var a collector.ExportProfilesServiceResponse
	if proto.Unmarshal(answer, &a) != nil {
		return nil // the status counts
	}
	if n := a.GetPartialSuccess().GetRejectedProfiles(); n > 0 {
		return &spool.ReplyError{Final: true, Text: fmt.Sprintf("%d profiles rejected: %.200q", n, a.GetPartialSuccess().GetErrorMessage())}
	}
	return nil
}

// encodeOTLP makes the gzipped body of a request of one profile.
func encodeOTLP(h head, pprof []byte) ([]byte, error) {
	p, err := profile.ParseData(pprof)
	if err != nil {
		return nil, err
	}
	body, err := proto.Marshal(request(h, p))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err = z.Write(body)
	if err == nil {
		err = z.Close()
	}
	return b.Bytes(), err
}

// request converts a pprof profile. OTLP has one type of value to a profile, so
// each of pprof's becomes a profile; all share stacks and names.
func request(h head, p *profile.Profile) *collector.ExportProfilesServiceRequest {
	d := newDictionary()
	labels := d.labels(h.Labels)
	samples := make([]*otlp.Sample, len(p.Sample))
	for i, s := range p.Sample {
		samples[i] = &otlp.Sample{StackIndex: d.stack(s.Location), AttributeIndices: d.sampleLabels(s)}
	}
	var profiles []*otlp.Profile
	for v, kind := range p.SampleType {
		out := &otlp.Profile{
			SampleType: d.valueType(kind), TimeUnixNano: uint64(max(h.Began, 0)), DurationNano: uint64(max(h.Ended-h.Began, 0)),
			PeriodType: d.valueType(p.PeriodType), Period: p.Period, ProfileId: profileID(h, kind.Type), AttributeIndices: labels,
		}
		for i, s := range p.Sample {
			out.Samples = append(out.Samples, &otlp.Sample{
				StackIndex: samples[i].StackIndex, AttributeIndices: samples[i].AttributeIndices, Values: []int64{s.Value[v]},
			})
		}
		profiles = append(profiles, out)
	}
	return &collector.ExportProfilesServiceRequest{
		Dictionary: d.out,
		ResourceProfiles: []*otlp.ResourceProfiles{{
			Resource:      &resource.Resource{Attributes: resourceOf(h)},
			ScopeProfiles: []*otlp.ScopeProfiles{{Scope: &common.InstrumentationScope{Name: "spinguard"}, Profiles: profiles}},
		}},
	}
}

// profileID is the same each time that this profile is sent, so that a receiver
// can tell a repetition.
func profileID(h head, kind string) []byte {
	sum := sha256.Sum256([]byte(h.Name + "\x00" + kind))
	return sum[:16]
}

func resourceOf(h head) []*common.KeyValue {
	list := []*common.KeyValue{{Key: "service.name", Value: text(h.App)}}
	if node := h.Labels["node"]; node != "" {
		list = append(list, &common.KeyValue{Key: "host.name", Value: text(node)})
	}
	return list
}

func text(s string) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: valid(s)}}
}

// valid makes a text that protobuf takes: names come from foreign memory.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// sortedKeys keeps outputs the same for the same input.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
