package doctor

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spinguard/spinguard/bpf"
)

// Sampler checks whether the sampler can be loaded here.
func Sampler() Finding {
	s, err := bpf.Open(49)
	if err != nil {
		return Finding{Check: "sampler", Level: Fail, Found: err.Error(), Why: "workers stuck on a CPU can't be seen", Remedy: "see the message"}
	}
	defer func() { _ = s.Close() }()
	return Finding{Check: "sampler", Level: OK, Found: "loaded and attached"}
}

// Kernel checks the settings of the kernel that hurt load balancers.
func (h Host) Kernel() []Finding {
	var list []Finding
	for _, check := range []func() (Finding, bool){h.release, h.btf, h.lockdown, h.cgroups, h.yama, h.sampleRate, h.paranoia, h.capabilities, h.somaxconn, h.synBacklog, h.portRange, h.recycle, h.conntrack} {
		if f, ok := check(); ok {
			list = append(list, f)
		}
	}
	return list
}

func (h Host) release() (Finding, bool) {
	text, ok := h.read("/proc/sys/kernel/osrelease")
	f := Finding{Check: "kernel", Level: OK, Found: text}
	var major, minor int
	if n, _ := fmt.Sscanf(text, "%d.%d", &major, &minor); n == 2 && (major < 5 || major == 5 && minor < 8) {
		f.Level, f.Why, f.Remedy = Fail, "the sampler needs a ring buffer, which came with 5.8", "use a newer kernel"
	}
	return f, ok
}

func (h Host) btf() (Finding, bool) {
	if _, err := os.Stat(filepath.Join(h.Root, "/sys/kernel/btf/vmlinux")); err != nil {
		return Finding{Check: "BTF", Level: Fail, Found: "none", Why: "the sampler finds kernel fields by it", Remedy: "use a kernel built with CONFIG_DEBUG_INFO_BTF=y"}, true
	}
	return Finding{Check: "BTF", Level: OK, Found: "/sys/kernel/btf/vmlinux"}, true
}
