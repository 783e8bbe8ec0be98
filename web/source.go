package web

import (
	"errors"
	"io"
	"os"

	"github.com/spinguard/spinguard/incident"
	"github.com/spinguard/spinguard/web/api"
)

// Source is what the pages show and change; the agent implements it. All
// methods may be called by many goroutines at once and must not wait for a
// proxy.
type Source interface {
	Status() api.Status
	Workers() []api.WorkerStatus // in the order of proxy and index
	// Glance is Workers for who looks all the time, and is content with what is
	// a second old.
	Glance() []api.WorkerStatus
	Quarantines() []api.Quarantine
	Classes() []api.Class // most CPU time first
	Signals() api.Signals
	// Add makes a quarantine by hand. An error that wraps ErrRefused is the
	// caller's fault and is shown as it is.
	Add(api.QuarantineRequest) (api.Quarantine, error)
	// Lift ends a quarantine by hand; ErrNotFound for an unknown id.
	Lift(id, reason string) error
	// Settings returns the configuration in force; it is shown as YAML, so
	// secrets must be masked already.
	Settings() any
}

// Incidents is where incidents are read; an incident.Store is one.
type Incidents interface {
	List(incident.Filter) ([]incident.Summary, error)
	Load(id string) (*incident.Incident, error)
	Files(id string) ([]incident.FileInfo, error)
	File(id, name string) (*os.File, error)
	Export(id string, w io.Writer) error
}

// Errors that a Source returns.
var (
	ErrRefused  = errors.New("refused")   // what was asked is wrong; HTTP 400
	ErrNotFound = errors.New("not found") // HTTP 404
)
