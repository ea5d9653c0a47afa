package machine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Password contains characters that URIs and configuration files of Alembic must escape. No output may contain it.
const Password = "hunter2 %/@"

// Postgres is a PostgreSQL server on loopback that accepts passwords only over TLS.
type Postgres struct {
	Bin, Dir   string
	Port       int
	attributes *syscall.SysProcAttr
	server     *exec.Cmd
}

// findPostgres returns the folder of the server's programs, or "".
func findPostgres() string {
	if path, err := exec.LookPath("initdb"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(real)
		}
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return ""
	}
	return filepath.Dir(found[len(found)-1])
}

// StartPostgres starts a server with a folder in dir. It installs a missing PostgreSQL on Debian.
func StartPostgres(ctx context.Context, dir string, certificates *Certificates) (*Postgres, error) {
	p := &Postgres{Bin: findPostgres(), Dir: filepath.Join(dir, "postgres")}
	if p.Bin == "" {
		if err := installPostgres(ctx); err != nil {
			return nil, err
		}
		if p.Bin = findPostgres(); p.Bin == "" {
			return nil, errors.New("PostgreSQL was installed, but its initdb is not in /usr/lib/postgresql: put it on the PATH")
		}
	}
	if err := p.initialize(ctx, certificates); err != nil {
		return nil, err
	}
	// Another program may take the port before the server starts.
	var startErr error
	for range 5 {
		err := p.start()
		if err == nil {
			return p, nil
		}
		startErr = errors.Join(startErr, err)
	}
	return nil, startErr
}

// installPostgres installs PostgreSQL and disables the server that Debian would start.
func installPostgres(ctx context.Context) error {
	const settings = "/etc/postgresql-common/createcluster.d"
	if os.Geteuid() == 0 {
		if err := os.MkdirAll(settings, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(settings, "no-main.conf"), []byte("create_main_cluster = false\n"), 0o644); err != nil {
			return err
		}
	}
	return InstallPackages(ctx, "the server of PostgreSQL", "postgresql")
}

// initialize creates the data directory of the server. PostgreSQL does not run as root.
func (p *Postgres) initialize(ctx context.Context, certificates *Certificates) error {
	if err := os.Mkdir(p.Dir, 0o700); err != nil {
		return err
	}
	uid, gid := os.Getuid(), os.Getgid()
	if uid == 0 {
		var err error
		if uid, gid, err = Unprivileged(); err != nil {
			return err
		}
		p.attributes = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
	for name, source := range map[string]string{"tls.crt": certificates.Certificate, "tls.key": certificates.Key, "password": ""} {
		content := []byte(Password)
		if source != "" {
			var err error
			if content, err = os.ReadFile(source); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(p.Dir, name), content, 0o600); err != nil {
			return err
		}
		if err := os.Chown(filepath.Join(p.Dir, name), uid, gid); err != nil {
			return err
		}
	}
	if err := os.Chown(p.Dir, uid, gid); err != nil {
		return err
	}
	command := p.Command(ctx, "initdb", "--pgdata="+filepath.Join(p.Dir, "data"), "--username=mlflow", "--encoding=UTF8", "--no-sync",
		"--auth=scram-sha-256", "--pwfile="+filepath.Join(p.Dir, "password"))
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, output)
	}
	return os.WriteFile(filepath.Join(p.Dir, "data", "pg_hba.conf"), []byte(strings.Join([]string{"hostssl", "all", "all", "127.0.0.1/32", "scram-sha-256\n"}, " ")), 0o644)
}

// Unprivileged returns the user that runs databases if the current user is root.
func Unprivileged() (uid, gid int, err error) {
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.Atoi(account.Uid)
		if err != nil {
			return 0, 0, err
		}
		gid, err := strconv.Atoi(account.Gid)
		return uid, gid, err
	}
	return 0, 0, errors.New("database servers do not run as root, and there is neither a user postgres nor a user nobody")
}

// Command returns the command of a PostgreSQL program.
func (p *Postgres) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, filepath.Join(p.Bin, name), args...)
	command.Dir = p.Dir
	command.Env = []string{"PATH=" + p.Bin + ":/usr/bin:/bin", "HOME=" + p.Dir, "LC_ALL=C", "PGPASSWORD=" + Password, "PGSSLMODE=require"}
	command.SysProcAttr = p.attributes
	return command
}

// start starts the server and waits until it accepts connections.
func (p *Postgres) start() error {
	port, err := FreePort()
	if err != nil {
		return err
	}
	p.Port = port
	args := []string{"-D", filepath.Join(p.Dir, "data"), "-p", strconv.Itoa(port)}
	for _, setting := range []string{
		"listen_addresses=127.0.0.1", "unix_socket_directories=", "ssl=on", "fsync=off",
		"ssl_cert_file=" + filepath.Join(p.Dir, "tls.crt"), "ssl_key_file=" + filepath.Join(p.Dir, "tls.key"),
	} {
		args = append(args, "-c", setting)
	}
	p.server = p.Command(context.Background(), "postgres", args...)
	output, err := p.server.StderrPipe()
	if err != nil {
		return err
	}
	if err := p.server.Start(); err != nil {
		return err
	}
	var logLines []string
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if logLines = append(logLines, lines.Text()); strings.Contains(lines.Text(), "ready to accept connections") {
			go func() { _, _ = io.Copy(io.Discard, output) }()
			return nil
		}
	}
	return fmt.Errorf("PostgreSQL exited: %w\n%s", p.server.Wait(), strings.Join(logLines, "\n"))
}

// Stop stops the server without waiting for clients.
func (p *Postgres) Stop() {
	_ = p.server.Process.Signal(syscall.SIGQUIT) // it may have exited
	exited := make(chan struct{})
	go func() { _ = p.server.Wait(); close(exited) }()
	select {
	case <-exited:
	case <-time.After(10 * time.Second):
		_ = p.server.Process.Kill()
	}
}

// URI returns the URI of a database, with options as key=value.
func (p *Postgres) URI(name string, options ...string) string {
	return (&url.URL{
		Scheme: "postgresql", User: url.UserPassword("mlflow", Password), Host: net.JoinHostPort("localhost", strconv.Itoa(p.Port)),
		Path: "/" + name, RawQuery: strings.Join(options, "&"),
	}).String()
}

// Create creates an empty database.
func (p *Postgres) Create(ctx context.Context, name string) error {
	output, err := p.Command(ctx, "createdb", "--host=localhost", "--port="+strconv.Itoa(p.Port), "--username=mlflow", name).CombinedOutput()
	if err != nil {
		return fmt.Errorf("createdb %s: %w\n%s", name, err, output)
	}
	return nil
}
