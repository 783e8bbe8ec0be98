package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/spinguard/spinguard/web/api"
)

// events sends the feed as server-sent events: the recent ones, then each as
// it happens, with a comment now and then so that a dead connection is seen.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	out := http.NewResponseController(w)
	recent, next, err := s.o.Feed.Subscribe(r.Context())
	if err != nil {
		writeError(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range recent {
		if writeEvent(w, e) != nil {
			return
		}
	}
	alive := time.NewTicker(15 * time.Second)
	defer alive.Stop()
	for {
		if out.Flush() != nil {
			return
		}
		select {
		case e, ok := <-next:
			if !ok {
				return
			}
			err = writeEvent(w, e)
		case <-alive.C:
			_, err = fmt.Fprint(w, ": alive\n\n")
		}
		if err != nil {
			return
		}
	}
}

// writeEvent writes one event; JSON has no line breaks of its own.
func writeEvent(w http.ResponseWriter, e api.Event) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "data: %s\n\n", data)
	return err
}
