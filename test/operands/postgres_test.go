//go:build operands

package operands

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
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// password has what URIs and Alembic's files have to escape. It must never be seen.
const password = "hunter2 %/@"

// postgres is a server of PostgreSQL on loopback that takes passwords over TLS only.
type postgres struct {
	bin, dir string
	port     int
	as       *syscall.SysProcAttr
	server   *exec.Cmd
}

// findPostgres returns the folder of the server's programs, "" if there is none.
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

func startPostgres(ctx context.Context, dir string) (*postgres, error) {
	p := &postgres{bin: findPostgres(), dir: filepath.Join(dir, "postgres")}
	if p.bin == "" {
		if err := installPostgres(ctx); err != nil {
			return nil, err
		}
		if p.bin = findPostgres(); p.bin == "" {
			return nil, errors.New("PostgreSQL was installed, but its initdb is not below /usr/lib/postgresql: put it on the PATH")
		}
	}
	if err := p.initialize(ctx); err != nil {
		return nil, err
	}
	// Another program may take the port between the choice and the start.
	var failed error
	for range 5 {
		err := p.start()
		if err == nil {
			return p, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

// installPostgres keeps Debian from starting a server of its own.
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
	return install(ctx, "the server of PostgreSQL", "postgresql")
}

// initialize makes the folder of the server. PostgreSQL refuses to run as root.
func (p *postgres) initialize(ctx context.Context) error {
	if err := os.Mkdir(p.dir, 0o700); err != nil {
		return err
	}
	uid, gid := os.Getuid(), os.Getgid()
	if uid == 0 {
		var err error
		if uid, gid, err = unprivileged(); err != nil {
			return err
		}
		p.as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
	for name, source := range map[string]string{"tls.crt": authority.certificate, "tls.key": authority.key, "password": ""} {
		content := []byte(password)
		if source != "" {
			var err error
			if content, err = os.ReadFile(source); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(p.dir, name), content, 0o600); err != nil {
			return err
		}
		if err := os.Chown(filepath.Join(p.dir, name), uid, gid); err != nil {
			return err
		}
	}
	if err := os.Chown(p.dir, uid, gid); err != nil {
		return err
	}
	command := p.command(ctx, "initdb", "--pgdata="+filepath.Join(p.dir, "data"), "--username=mlflow", "--encoding=UTF8", "--no-sync",
		"--auth=scram-sha-256", "--pwfile="+filepath.Join(p.dir, "password"))
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, output)
	}
	return os.WriteFile(filepath.Join(p.dir, "data", "pg_hba.conf"), []byte("hostssl all all 127.0.0.1/32 scram-sha-256\n"), 0o644)
}

func unprivileged() (uid, gid int, err error) {
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
	return 0, 0, errors.New("PostgreSQL does not run as root, and there is neither a user postgres nor a user nobody")
}

func (p *postgres) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, filepath.Join(p.bin, name), args...)
	command.Dir = p.dir
	command.Env = []string{"PATH=" + p.bin + ":/usr/bin:/bin", "HOME=" + p.dir, "LC_ALL=C", "PGPASSWORD=" + password, "PGSSLMODE=require"}
	command.SysProcAttr = p.as
	return command
}

// start returns when the server says that it takes connections.
func (p *postgres) start() error {
	port, err := freePort()
	if err != nil {
		return err
	}
	p.port = port
	args := []string{"-D", filepath.Join(p.dir, "data"), "-p", strconv.Itoa(port)}
	for _, setting := range []string{
		"listen_addresses=127.0.0.1", "unix_socket_directories=", "ssl=on", "fsync=off",
		"ssl_cert_file=" + filepath.Join(p.dir, "tls.crt"), "ssl_key_file=" + filepath.Join(p.dir, "tls.key"),
	} {
		args = append(args, "-c", setting)
	}
	p.server = p.command(context.Background(), "postgres", args...)
	output, err := p.server.StderrPipe()
	if err != nil {
		return err
	}
	if err := p.server.Start(); err != nil {
		return err
	}
	var said []string
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if said = append(said, lines.Text()); strings.Contains(lines.Text(), "ready to accept connections") {
			go func() { _, _ = io.Copy(io.Discard, output) }()
			return nil
		}
	}
	return fmt.Errorf("PostgreSQL ended: %w\n%s", p.server.Wait(), strings.Join(said, "\n"))
}

// stop waits for no client.
func (p *postgres) stop() {
	_ = p.server.Process.Signal(syscall.SIGQUIT) // it may have ended by itself
	ended := make(chan struct{})
	go func() { _ = p.server.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		_ = p.server.Process.Kill()
	}
}

// uri is that of a database. Options may be added as key=value.
func (p *postgres) uri(name string, options ...string) string {
	return (&url.URL{
		Scheme: "postgresql", User: url.UserPassword("mlflow", password), Host: net.JoinHostPort("localhost", strconv.Itoa(p.port)),
		Path: "/" + name, RawQuery: strings.Join(options, "&"),
	}).String()
}

// create makes an empty database.
func (p *postgres) create(ctx context.Context, name string) error {
	output, err := p.command(ctx, "createdb", "--host=localhost", "--port="+strconv.Itoa(p.port), "--username=mlflow", name).CombinedOutput()
	if err != nil {
		return fmt.Errorf("createdb %s: %w\n%s", name, err, output)
	}
	return nil
}

// ports are those that were given away, and need not be taken yet.
var ports struct {
	sync.Mutex
	given []int
}

// freePort returns a port that nothing listened on a moment ago, and never the same one twice.
func freePort() (int, error) {
	for {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, err
		}
		port := listener.Addr().(*net.TCPAddr).Port
		if err := listener.Close(); err != nil {
			return 0, err
		}
		ports.Lock()
		fresh := !slices.Contains(ports.given, port)
		ports.given = append(ports.given, port)
		ports.Unlock()
		if fresh {
			return port, nil
		}
	}
}
