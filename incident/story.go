package incident

import (
	"fmt"
	"strings"
)

// Story tells the incident in one sentence: who, since when, where, with which
// values, for which request, and what became of it. It is pure: the same
// incident gives the same sentence, and its time of day is UTC.
func Story(inc *Incident) string {
	var b strings.Builder
	b.WriteString(opening(inc))
	if p := place(inc); p != "" {
		b.WriteString(": " + p)
	}
	if e := ending(inc); e != "" {
		b.WriteString("; " + e)
	}
	b.WriteString(".")
	return printable(b.String(), "")
}

// opening says who did what since when.
func opening(inc *Incident) string {
	did := map[string]string{
		"runaway":     "stopped turning its event loop at",
		"blocked":     "fell asleep outside its event wait at",
		"spinning":    "turned its event loop without getting anywhere from",
		"saturated":   "was at full CPU but still made progress from",
		"lock_victim": "got stuck on a lock at",
		"suspect":     "made no progress from",
	}[inc.Verdict]
	if did == "" {
		did = "was found " + inc.Verdict + " at"
	}
	who := fmt.Sprintf("%s of %s", capital(name(inc.Worker)), word(inc.Proxy, "an unnamed proxy"))
	if n := inc.WorkersStuck - 1; n > 0 {
		who += fmt.Sprintf(", the first of %d,", inc.WorkersStuck)
	}
	return fmt.Sprintf("%s %s %s UTC", who, did, inc.Began.UTC().Format("15:04:05.000"))
}

// place says in which function, with which values, for which upstream and
// request. It is empty when nothing of it is known.
func place(inc *Incident) string {
	s, doing := did(inc), purpose(&inc.Evidence)
	switch {
	case doing == "":
		return s
	case s == "":
		return "it was " + strings.TrimPrefix(doing, "while ")
	}
	return s + " " + doing
}

// did says what the hot frame did.
func did(inc *Incident) string {
	f := hot(&inc.Evidence)
	switch {
	case inc.Lock != nil:
		return lock(inc.Lock, f)
	case inc.Blocked != nil:
		s := word(f, "it") + " waited in " + word(inc.Blocked.Syscall, "a system call")
		if inc.Blocked.Target != "" {
			s += " for " + inc.Blocked.Target
		}
		return s
	case f == "":
		return ""
	case len(inc.Evidence.Values) > 0:
		return f + " ran on " + values(&inc.Evidence)
	}
	return f + " ran"
}

func hot(e *Evidence) string {
	if e.Hot < len(e.Stack) && e.Hot >= 0 {
		return e.Stack[e.Hot].String()
	}
	if len(e.Frames) > 0 {
		return e.Frames[0]
	}
	return ""
}

// values lists the arguments, or the locals where there is no argument; four
// are enough for a sentence.
func values(e *Evidence) string {
	var args, locals []string
	for _, v := range e.Values {
		s := v.Name + " = " + cut(v.Text, 64)
		if v.Argument {
			args = append(args, s)
		} else {
			locals = append(locals, s)
		}
	}
	if len(args) == 0 {
		args = locals
	}
	return strings.Join(args[:min(4, len(args))], ", ")
}

// purpose says what the work was for.
func purpose(e *Evidence) string {
	var s string
	switch {
	case e.Upstream != "" && e.Phase == "pick":
		s = "while picking a peer of " + upstream(e)
		if e.Request != "" {
			s += ", for " + request(e)
		}
	case e.Request != "":
		s = "while serving " + request(e)
		if e.Upstream != "" {
			s += " through " + upstream(e)
		}
	case e.Upstream != "":
		s = "at work for " + upstream(e)
	}
	return s
}

// request is method and path; the protocol is left out.
func request(e *Evidence) string {
	s := e.Request
	if i := strings.LastIndex(s, " HTTP/"); i > 0 {
		s = s[:i]
	}
	return cut(s, 200)
}

func upstream(e *Evidence) string {
	if e.Version == "" {
		return "upstream " + e.Upstream
	}
	return fmt.Sprintf("upstream %s, version %s", e.Upstream, e.Version)
}

// lock says who holds the lock, where, and how many wait.
func lock(l *Lock, frame string) string {
	s := name(l.Holder)
	if l.Verdict != "" {
		s += ", itself " + l.Verdict + ","
	}
	s += " held the lock of " + word(l.Zone, "a shared memory zone")
	if frame != "" {
		s += " in " + frame
	}
	if n := len(l.Victims); n > 0 {
		s += fmt.Sprintf(" with %d %s waiting for it", n, plural(n, "worker"))
	}
	return s
}

func name(w Worker) string {
	switch {
	case w.Index > 0:
		return fmt.Sprintf("worker %d", w.Index)
	case w.PID > 0:
		return fmt.Sprintf("worker pid %d", w.PID)
	}
	return "a worker"
}

func word(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func plural(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
