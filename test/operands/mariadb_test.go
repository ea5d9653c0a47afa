//go:build operands

package operands

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/odh-platform/odh-platform-operator/test/operands/machine"
)

// mariaPassword contains the separators of a MySQL DSN.
const mariaPassword = "hunter2 :%/@(x)?"

// mariaServer is a MariaDB server on loopback. User `registry` requires TLS, user `plain` does not.
type mariaServer struct {
	dir        string
	port       int
	attributes *syscall.SysProcAttr
	server     *exec.Cmd
}

// sharedMariaDB starts the server that all tests share.
var sharedMariaDB = sync.OnceValues(func() (*mariaServer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), installExpiry)
	defer cancel()
	m, err := startMariaDB(ctx)
	if err == nil {
		registerCleanup(m.stop)
	}
	return m, err
})

func startMariaDB(ctx context.Context) (*mariaServer, error) {
	server, err := exec.LookPath("mariadbd")
	if err != nil {
		if err := machine.InstallPackages(ctx, "the server of MariaDB", "mariadb-server-core", "mariadb-client-core"); err != nil {
			return nil, err
		}
		if server, err = exec.LookPath("mariadbd"); err != nil {
			return nil, fmt.Errorf("MariaDB was installed, but its server is not on the PATH: %w", err)
		}
	}
	dir, err := os.MkdirTemp("", "operands-mariadb-")
	if err != nil {
		return nil, err
	}
	m := &mariaServer{dir: dir}
	if err := m.initialize(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	// Another program may take the port before the server starts.
	var startErr error
	for range 5 {
		if err := m.start(server); err == nil {
			return m, nil
		} else {
			startErr = errors.Join(startErr, err)
		}
	}
	return nil, errors.Join(startErr, os.RemoveAll(dir))
}

func (m *mariaServer) path(name string) string { return filepath.Join(m.dir, name) }

// initialize creates the data directory of the server. MariaDB does not run as root.
func (m *mariaServer) initialize(ctx context.Context) error {
	uid, gid := os.Getuid(), os.Getgid()
	if uid == 0 {
		var err error
		if uid, gid, err = machine.Unprivileged(); err != nil {
			return err
		}
		m.attributes = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
	certificate, certErr := os.ReadFile(authority.Certificate)
	key, keyErr := os.ReadFile(authority.Key)
	if err := errors.Join(certErr, keyErr); err != nil {
		return err
	}
	// --init-file requires one statement per line.
	accounts := strings.Join([]string{
		"CREATE DATABASE secured;",
		"CREATE DATABASE opened;",
		"CREATE USER 'registry'@'%' IDENTIFIED BY '" + mariaPassword + "' REQUIRE SSL;",
		"CREATE USER 'plain'@'%' IDENTIFIED BY '" + mariaPassword + "';",
		"GRANT ALL ON secured.* TO 'registry'@'%';",
		"GRANT ALL ON opened.* TO 'plain'@'%';",
		"",
	}, "\n")
	for name, content := range map[string][]byte{"tls.crt": certificate, "tls.key": key, "accounts.sql": []byte(accounts)} {
		if err := os.WriteFile(m.path(name), content, 0o600); err != nil {
			return err
		}
		if err := os.Chown(m.path(name), uid, gid); err != nil {
			return err
		}
	}
	if err := os.Chown(m.dir, uid, gid); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "mariadb-install-db", "--no-defaults", "--datadir="+m.path("data"), "--skip-test-db",
		"--auth-root-authentication-method=normal")
	command.Dir, command.SysProcAttr = m.dir, m.attributes
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("mariadb-install-db: %w\n%s", err, output)
	}
	return nil
}

// start starts the server and waits until it accepts connections.
func (m *mariaServer) start(program string) error {
	port, err := machine.FreePort()
	if err != nil {
		return err
	}
	m.port = port
	m.server = exec.Command(program, "--no-defaults", "--datadir="+m.path("data"), "--port="+strconv.Itoa(port), "--bind-address=127.0.0.1",
		"--socket="+m.path("socket"), "--pid-file="+m.path("pid"), "--ssl-cert="+m.path("tls.crt"), "--ssl-key="+m.path("tls.key"),
		"--init-file="+m.path("accounts.sql"), "--skip-name-resolve", "--innodb-flush-log-at-trx-commit=0")
	m.server.Dir, m.server.SysProcAttr = m.dir, m.attributes
	output, err := m.server.StderrPipe()
	if err != nil {
		return err
	}
	if err := m.server.Start(); err != nil {
		return err
	}
	var logLines []string
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if logLines = append(logLines, lines.Text()); strings.Contains(lines.Text(), "ready for connections") {
			go func() { _, _ = io.Copy(io.Discard, output) }()
			return nil
		}
	}
	return fmt.Errorf("MariaDB exited: %w\n%s", m.server.Wait(), strings.Join(logLines, "\n"))
}

// stop stops the server without waiting for clients, and deletes its folder.
func (m *mariaServer) stop() {
	_ = m.server.Process.Signal(syscall.SIGTERM) // it may have exited
	exited := make(chan struct{})
	go func() { _ = m.server.Wait(); close(exited) }()
	select {
	case <-exited:
	case <-time.After(10 * time.Second):
		_ = m.server.Process.Kill()
	}
	_ = os.RemoveAll(m.dir)
}
