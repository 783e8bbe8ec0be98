// Package debian holds the Debian package; it has tests only.
package debian

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// build makes the package from the tree as it is, or skips the test.
func build(t *testing.T, version string) string {
	t.Helper()
	for _, name := range []string{"../../build/tools/nfpm", "../../bin/spinguard"} {
		if _, err := os.Stat(name); err != nil {
			lacks(t, "no "+name+": make package")
		}
	}
	dir := t.TempDir()
	stage := filepath.Join(dir, "package")
	sh(t, "mkdir -p "+stage+" && bin/spinguard manual | gzip -9n >"+stage+"/spinguard.8.gz && bin/spinguard completion bash >"+stage+
		"/spinguard.bash && bin/spinguard completion zsh >"+stage+"/_spinguard")
	text, err := os.ReadFile("nfpm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "nfpm.yaml")
	if err := os.WriteFile(config, []byte(strings.ReplaceAll(string(text), "build/package", stage)), 0o600); err != nil {
		t.Fatal(err)
	}
	deb := filepath.Join(dir, "spinguard.deb")
	sh(t, "PACKAGE_VERSION="+version+" build/tools/nfpm package --config "+config+" --packager deb --target "+deb)
	return deb
}

// sh runs a script in the root of the project and returns what it says.
func sh(t *testing.T, script string) string {
	t.Helper()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = "../.."
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

// The package goes in, keeps a changed configuration over an upgrade, and goes
// out again, in a root of its own.
func TestInstallUpgradePurge(t *testing.T) {
	if os.Getuid() != 0 {
		lacks(t, "not root")
	}
	deb, root := build(t, "1.2.3"), t.TempDir()
	sh(t, "mkdir -p "+root+"/var/lib/dpkg/info "+root+"/var/lib/dpkg/updates && touch "+root+"/var/lib/dpkg/status")
	dpkg := "dpkg --root=" + root + " --force-script-chrootless --log=/dev/null "
	sh(t, dpkg+"-i "+deb)
	for _, name := range []string{
		"usr/bin/spinguard", "lib/systemd/system/spinguard.service", "etc/spinguard/agent.yaml", "usr/share/lua/5.1/resty/spinguard.lua",
		"usr/share/lua/5.1/resty/spinguard/layout.lua", "usr/share/man/man8/spinguard.8.gz", "usr/share/bash-completion/completions/spinguard",
	} {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			t.Error(err)
		}
	}
	if out := sh(t, root+"/usr/bin/spinguard version"); !strings.HasPrefix(out, "spinguard ") {
		t.Errorf("version: %q", out)
	}
	config := filepath.Join(root, "etc/spinguard/agent.yaml")
	if err := os.WriteFile(config, []byte("mode: enforce\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sh(t, dpkg+"--force-confdef --force-confold -i "+deb+" && mkdir -p "+root+"/var/lib/spinguard/incidents "+root+"/run/spinguard/main")
	if text, err := os.ReadFile(config); err != nil || string(text) != "mode: enforce\n" {
		t.Errorf("an upgrade changed the configuration: %q %v", text, err)
	}
	sh(t, dpkg+"--purge spinguard")
	for name, want := range map[string]bool{"usr/bin/spinguard": false, "etc/spinguard/agent.yaml": false, "var/lib/spinguard": false, "run/spinguard/main": true} {
		if _, err := os.Stat(filepath.Join(root, name)); (err == nil) != want {
			t.Errorf("after the purge, %s: there %v, want %v", name, err == nil, want)
		}
	}
}

// The scripts speak of nothing but the agent's own unit. They run in a mount
// namespace whose /run looks like systemd's and whose systemctl only writes.
func TestScriptsTouchOnlyTheAgent(t *testing.T) {
	if exec.Command("unshare", "-m", "true").Run() != nil {
		lacks(t, "no mount namespaces")
	}
	dir := t.TempDir()
	fake := "#!/bin/sh\necho \"${0##*/} $*\" >>" + dir + "/calls\n"
	for _, name := range []string{"systemctl", "deb-systemd-invoke", "service", "invoke-rc.d", "nginx", "kill", "pkill"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(fake), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct{ script, args, want string }{
		{"postinst", "configure ''", "systemctl daemon-reload\nsystemctl enable spinguard.service\ndeb-systemd-invoke start spinguard.service\n"},
		{"postinst", "configure 1.0", "systemctl daemon-reload\ndeb-systemd-invoke try-restart spinguard.service\n"},
		{"postinst", "abort-upgrade 1.0", ""},
		{"prerm", "upgrade 1.3", ""},
		{"prerm", "remove", "deb-systemd-invoke stop spinguard.service\nsystemctl disable spinguard.service\n"},
		{"postrm", "remove", "systemctl daemon-reload\n"},
	} {
		calls := filepath.Join(dir, "calls")
		_ = os.Remove(calls)
		sh(t, "unshare -m sh -ec 'mount -t tmpfs none /run; mkdir -p /run/systemd/system; PATH="+dir+":$PATH sh deploy/debian/"+test.script+" "+
			strings.ReplaceAll(test.args, "''", `""`)+"'")
		got, _ := os.ReadFile(calls)
		if string(got) != test.want {
			t.Errorf("%s %s:\n%swant:\n%s", test.script, test.args, got, test.want)
		}
	}
}

// The package lives under a real systemd, in a clean Debian.
func TestLifeUnderSystemd(t *testing.T) {
	if os.Getuid() != 0 {
		lacks(t, "not root")
	}
	if _, err := exec.LookPath("mmdebstrap"); err != nil {
		lacks(t, "no mmdebstrap")
	}
	dir := t.TempDir()
	for _, version := range []string{"1", "2"} {
		if err := os.Rename(build(t, version), filepath.Join(dir, "spinguard_"+version+".deb")); err != nil {
			t.Fatal(err)
		}
	}
	t.Log(sh(t, "exec scripts/debian.sh run deploy/debian/testdata/life.sh "+dir+"/spinguard_1.deb "+dir+"/spinguard_2.deb"))
}

// lacks skips a test for want of something, or fails it where nothing may be
// skipped.
func lacks(t *testing.T, what ...any) {
	t.Helper()
	if os.Getenv("REQUIRE_BPF") == "1" {
		t.Fatal(what...)
	}
	t.Skip(what...)
}
