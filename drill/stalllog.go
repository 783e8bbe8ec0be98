package drill

import (
	"bufio"
	"encoding/json"
	"os"
	"time"
)

// stallLog reads the standstills from the agent's log: JSON lines whose
// message is "stall".
type stallLog struct{ file string }

func (g stallLog) read(since time.Time) ([]stall, error) {
	f, err := os.Open(g.file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []stall
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var line struct {
			Msg string `json:"msg"`
			stall
		}
		if json.Unmarshal(in.Bytes(), &line) == nil && line.Msg == "stall" && !line.At.Before(since) {
			out = append(out, line.stall)
		}
	}
	return out, in.Err()
}
