package watchdog

import (
	"os"
	"strconv"

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
}

// RaisePriority makes the scheduler prefer this program. Linux keeps niceness
// by thread; threads to come inherit it from those that are there.
func RaisePriority() error {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, task := range tasks {
		tid, err := strconv.Atoi(task.Name())
		if err != nil {
			continue
		}
		if err := unix.Setpriority(unix.PRIO_PROCESS, tid, niceness); err != nil {
			return err
		}
	}
	return nil
}
