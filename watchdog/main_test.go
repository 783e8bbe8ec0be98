package watchdog

import (
	"os"
	"testing"
)

// The agent's self-test starts this very program once more as its child.
func TestMain(m *testing.M) {
	SelfTestChild()
	os.Exit(m.Run())
}
