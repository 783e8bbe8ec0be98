package watchdog

import (
	"errors"
	"os"
	"strconv"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// niceness of the agent: under full load of all cores it must still run, and
// it needs little.
const niceness = -15

// raisePriority makes the scheduler prefer the agent.
func raisePriority(log *zap.Logger) {
	if err := RaisePriority(); err != nil {
		log.Warn("could not raise the priority: on a crowded host verdicts may come late", zap.Error(err))
	}
	if err := preferSession(); err != nil {
		log.Debug("the agent's session stays one among equals", zap.Error(err)) // in a cgroup of its own that is of no matter
	}
	if err := slackTimers(); err != nil {
		log.Debug("timers stay exact, which costs a little", zap.Error(err)) // a unit may have set it already
	}
}

// slack is how late timers of the agent may fire. It waits for samples, not for
// timers; but Go's runtime has a thread of its own that looks after the others
// each 20 us for as long as any of them runs, which takes a fifth of what the
// agent does.
const slack = time.Millisecond

// slackTimers lets timers of this program's threads fire late, those to come
// included: they inherit it.
func slackTimers() error {
	return eachThread(func(tid int) error {
		return os.WriteFile("/proc/"+strconv.Itoa(tid)+"/timerslack_ns", []byte(strconv.FormatInt(slack.Nanoseconds(), 10)), 0)
	})
}

// RaisePriority makes the scheduler prefer this program. Linux keeps niceness
// by thread; threads to come inherit it from those that are there.
func RaisePriority() error {
	return eachThread(func(tid int) error { return unix.Setpriority(unix.PRIO_PROCESS, tid, niceness) })
}

// preferSession does the same for the session, if the program leads it: where
// the kernel shares CPUs between sessions first (autogroup), niceness tells apart
// only threads of one. A session that somebody else leads is left alone.
func preferSession() error {
	if leader, err := unix.Getsid(0); err != nil || leader != os.Getpid() {
		return nil
	}
	err := os.WriteFile("/proc/self/autogroup", []byte(strconv.Itoa(niceness)), 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil // this kernel does not
	}
	return err
}

func eachThread(do func(tid int) error) error {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, task := range tasks {
		tid, err := strconv.Atoi(task.Name())
		if err != nil {
			continue
		}
		if err := do(tid); err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ESRCH) { // it may have ended
			return err
		}
	}
	return nil
}
