package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// ErrUnsupported is returned if this machine cannot run a real node. The error that wraps it has the missing requirement.
var ErrUnsupported = errors.New("this machine cannot run a real node")

// tools are the commands and files that a node requires, with their Debian packages.
var tools = []struct{ command, file, pkg string }{
	{command: "ip", pkg: "iproute2"},
	{command: "nft", pkg: "nftables"},
	{command: "gcc", pkg: "gcc libc6-dev"},
	{command: "pkg-config", pkg: "pkg-config"},
	{file: "/usr/include/seccomp.h", pkg: "libseccomp-dev"},
	{command: "mmdebstrap", pkg: "mmdebstrap"},
}

const sysAdmin = 21 // CAP_SYS_ADMIN, see capabilities(7)

// Check returns an error that wraps [ErrUnsupported] if this machine cannot run a real node. It ignores missing packages that
// [Require] installs.
func Check() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("%w: it requires Linux", ErrUnsupported)
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: it requires root", ErrUnsupported)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return fmt.Errorf("reading the capabilities: %w", err)
	}
	if !hasCapability(string(status), sysAdmin) {
		return fmt.Errorf("%w: it requires the capability CAP_SYS_ADMIN", ErrUnsupported)
	}
	if _, err := os.Stat("/proc/sys/net/bridge/bridge-nf-call-iptables"); err != nil {
		return fmt.Errorf("%w: the kernel lacks br_netfilter, try: modprobe br_netfilter", ErrUnsupported)
	}
	if filesystems, err := os.ReadFile("/proc/filesystems"); err != nil || !strings.Contains(string(filesystems), "\toverlay\n") {
		return fmt.Errorf("%w: the kernel lacks overlay, try: modprobe overlay", ErrUnsupported)
	}
	if packages := missingPackages(); len(packages) > 0 {
		if _, err := exec.LookPath("apt-get"); err != nil {
			return fmt.Errorf("%w: install the equivalents of the Debian packages %s", ErrUnsupported, strings.Join(packages, " "))
		}
	}
	return nil
}

// Require returns an error if this machine cannot run a real node. On Debian it installs missing packages.
func Require(ctx context.Context, progress io.Writer) error {
	if err := Check(); err != nil {
		return err
	}
	packages := missingPackages()
	if len(packages) == 0 {
		return nil
	}
	fmt.Fprintln(progress, "installing", strings.Join(packages, " "))
	for _, args := range [][]string{{"update", "-qq"}, append([]string{"install", "-qq", "-y", "--no-install-recommends"}, packages...)} {
		command := exec.CommandContext(ctx, "apt-get", args...)
		command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("installing %s: %w\n%s", strings.Join(packages, " "), err, output)
		}
	}
	return nil
}

func missingPackages() []string {
	var packages []string
	for _, tool := range tools {
		var err error
		if tool.file != "" {
			_, err = os.Stat(tool.file)
		} else {
			_, err = exec.LookPath(tool.command)
		}
		if err != nil {
			packages = append(packages, strings.Fields(tool.pkg)...)
		}
	}
	return packages
}

// hasCapability reports whether a capability is effective in /proc/<pid>/status.
func hasCapability(status string, number int) bool {
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, "CapEff:"); ok {
			var set uint64
			_, err := fmt.Sscanf(strings.TrimSpace(value), "%x", &set)
			return err == nil && set&(1<<number) != 0
		}
	}
	return false
}
