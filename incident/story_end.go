package incident

import (
	"fmt"
	"strings"
	"time"
)

// ending says what was done and what became of it.
func ending(inc *Incident) string {
	switch inc.Outcome {
	case EndedAlone:
		if inc.Verdict == "saturated" {
			return join(done(inc), fmt.Sprintf("it lasted %s and needed no action", age(inc.recovery())))
		}
		return join(done(inc), "it went on by itself after "+age(inc.recovery()))
	case Observed:
		return observed(inc)
	case Refused:
		return join(done(inc), "it was left alone: "+refusal(inc))
	case StuckAgain:
		return join(done(inc), "its successor got stuck on the same culprit, so the agent stopped and raised an alert")
	case Failed:
		return join(done(inc), served(inc)+" did not answer again")
	case Gone:
		return join(done(inc), "the worker ended for another reason after "+age(inc.recovery()))
	}
	if inc.Timeline.Recovered != nil {
		return join(done(inc), fmt.Sprintf("%s answered again after %s", served(inc), ms(*inc.Timeline.Recovered)))
	}
	if inc.Open() {
		return join(done(inc), "it has not ended yet")
	}
	return done(inc)
}

// done lists the steps that were taken, "version 2 was quarantined after 402
// ms, the worker replaced after 431 ms".
func done(inc *Incident) string {
	var steps []string
	if q := inc.Timeline.Quarantined; q != nil {
		steps = append(steps, fmt.Sprintf("%s was quarantined after %s", quarantined(inc), ms(*q)))
	}
	if e := inc.Timeline.Evicted; e != nil {
		verb := "was replaced"
		if len(steps) > 0 {
			verb = "replaced"
		}
		who := "the worker"
		if n := inc.WorkersEvicted; n > 1 {
			who = fmt.Sprintf("%d workers", n)
			verb = strings.Replace(verb, "was", "were", 1)
		}
		steps = append(steps, fmt.Sprintf("%s %s after %s", who, verb, ms(*e)))
	}
	return strings.Join(steps, ", ")
}

func quarantined(inc *Incident) string {
	switch e := inc.Evidence; {
	case e.Version != "":
		return "version " + e.Version
	case e.Upstream != "":
		return "upstream " + e.Upstream
	}
	return "the culprit"
}

func served(inc *Incident) string {
	return word(inc.Evidence.Upstream, word(inc.Proxy, "the proxy"))
}

// observed says what enforce would have done.
func observed(inc *Incident) string {
	s := "in mode observe nothing was done"
	var would []string
	for _, a := range inc.Actions {
		if a.Result == "would" {
			would = append(would, a.Kind+" "+a.Target)
		}
	}
	if len(would) > 0 {
		s += "; enforce would have done: " + strings.Join(would[:min(3, len(would))], ", then ")
	}
	return s
}

// refusal gives the reason of the last refused action.
func refusal(inc *Incident) string {
	for i := len(inc.Actions) - 1; i >= 0; i-- {
		if a := inc.Actions[i]; a.Result == "refused" {
			return word(a.Text, a.Kind+" was refused")
		}
	}
	return "a rail forbade it"
}

// recovery returns the time from the beginning to the end, or to the recovery.
func (inc *Incident) recovery() time.Duration {
	if r := inc.Timeline.Recovered; r != nil {
		return time.Duration(*r) * time.Millisecond
	}
	if inc.Ended != nil {
		return inc.Ended.Sub(inc.Began)
	}
	return 0
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + ", and " + b
}

func ms(n int64) string { return age(time.Duration(n) * time.Millisecond) }

// age writes a length of time as people say it: 613 ms, 4.2 s, 3 min 10 s, 2 h 5 min.
func age(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}
