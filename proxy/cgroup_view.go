package proxy

import (
	"os"
	"path"
	"slices"
	"strconv"
)

// CgroupView is what can be read of the cgroups of a process.
type CgroupView struct {
	Hierarchies []string // mounted: "v2", "v1 cpu", sorted
	Throttling  int      // levels whose throttling can be read
}

// ViewCgroups looks at what the throttling of a process would be
// read from. pid 0 is this process. root stands in front of /proc and of the
// mounts; "/" outside of tests.
func ViewCgroups(root string, pid int) (CgroupView, error) {
	name := "self"
	if pid != 0 {
		name = strconv.Itoa(pid)
	}
	mountinfo, err := os.ReadFile(path.Join(root, "/proc/self/mountinfo"))
	if err != nil {
		return CgroupView{}, err
	}
	membership, err := os.ReadFile(path.Join(root, "/proc", name, "cgroup"))
	if err != nil {
		return CgroupView{}, err
	}
	mounts := parseMounts(string(mountinfo))
	var v CgroupView
	for i, m := range mounts {
		mounts[i].point = path.Join(root, m.point)
		for _, controller := range m.controllers {
			if controller == "" {
				v.Hierarchies = append(v.Hierarchies, "v2")
			} else if slices.Contains([]string{"cpu", "freezer"}, controller) {
				v.Hierarchies = append(v.Hierarchies, "v1 "+controller)
			}
		}
	}
	slices.Sort(v.Hierarchies)
	g := openCgroup(parseMembership(string(membership)), mounts)
	v.Throttling = len(g.stats)
	g.close()
	return v, nil
}
