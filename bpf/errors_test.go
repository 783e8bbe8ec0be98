package bpf

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

func TestExplainNamesTheCause(t *testing.T) {
	all := func(int) bool { return true }
	none := func(int) bool { return false }
	only := func(want int) func(int) bool { return func(c int) bool { return c == want } }
	tests := []struct {
		name  string
		host  host
		step  string
		cause error
		want  error
	}{
		{"no BTF", host{caps: all, kernel: "5.10.0"}, stepLoad, unix.ENOENT, ErrNoBTF},
		{"no capability", host{btf: true, caps: none}, stepLoad, unix.EPERM, ErrCapability},
		{"no CAP_PERFMON", host{btf: true, caps: only(unix.CAP_BPF)}, stepEvent, unix.EACCES, ErrCapability},
		{"lockdown", host{btf: true, caps: all, lockdown: "confidentiality"}, stepLoad, unix.EPERM, ErrLockdown},
		{"memlock", host{btf: true, caps: all}, stepLoad, unix.EPERM, ErrMemlock},
		{"paranoid", host{btf: true, caps: all, paranoid: "4"}, stepEvent, unix.EACCES, ErrParanoid},
		{"no event", host{btf: true, caps: all}, stepEvent, unix.ENOENT, ErrNoEvent},
		{"old kernel", host{btf: true, caps: all, kernel: "5.4.0-42"}, stepLoad, unix.EINVAL, ErrKernelOld},
		{"verifier", host{btf: true, caps: all, kernel: "6.1.0"}, stepLoad, unix.EINVAL, ErrVerifier},
	}
	for _, test := range tests {
		err := test.host.explain(test.step, test.cause)
		var refused *RefusedError
		if !errors.Is(err, test.want) || !errors.As(err, &refused) || refused.Remedy == "" {
			t.Errorf("%s: %v, want %v with a remedy", test.name, err, test.want)
		}
	}
}

func TestParseCPUs(t *testing.T) {
	got, err := parseCPUs("0-2,5")
	if err != nil || len(got) != 4 || got[3] != 5 {
		t.Errorf("CPUs %v, %v; want 0 1 2 5", got, err)
	}
	for _, bad := range []string{"", "x", "3-1", "0-", "0-99999999"} {
		if _, err := parseCPUs(bad); err == nil {
			t.Errorf("list %q was taken", bad)
		}
	}
}

func TestLockdownIsTheBracketedWord(t *testing.T) {
	if got := selected("none [integrity] confidentiality\n"); got != "integrity" {
		t.Errorf("lockdown %q, want integrity", got)
	}
}
