package incident

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// maxJSON bounds an incident.json that is read. What this package writes is
// far smaller, see limits.go.
const maxJSON = 8 << 20

// Decode reads an incident.json. Fields that it does not know are left out, so
// that a newer agent's folder can still be shown. Lists are never nil after it.
func Decode(r io.Reader) (*Incident, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxJSON+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxJSON {
		return nil, fmt.Errorf("incident.json: over %d bytes", maxJSON)
	}
	var inc Incident
	if err := json.Unmarshal(data, &inc); err != nil {
		return nil, fmt.Errorf("incident.json: %s", err)
	}
	if err := CheckID(inc.ID); err != nil {
		return nil, fmt.Errorf("incident.json: %w", err)
	}
	inc.bound()
	return &inc, nil
}

// Encode returns the incident.json of inc, with the story filled in and every
// text and list within its bound. It changes nothing in inc.
func Encode(inc *Incident) ([]byte, error) {
	c := prepared(inc)
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(c); err != nil {
		return nil, fmt.Errorf("incident %s: %s", inc.ID, err)
	}
	return b.Bytes(), nil
}

// prepared returns a bounded copy of inc with its story.
func prepared(inc *Incident) *Incident {
	c := *inc
	c.bound()
	c.Story = Story(&c)
	return &c
}
