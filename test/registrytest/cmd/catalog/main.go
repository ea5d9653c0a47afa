// Command catalog starts the servers of Model Registry v0.2.22 in test pods: the catalog server with the argument `catalog`, otherwise the
// registry server.
//
// The catalog server of v0.2.22 reads one file of sources, and supports neither a database nor a probe. The command merges the files of
// the operator, reports ready while the server and the database respond, and forwards requests below /api/ to the server. The path / lists
// the files that the init containers have copied.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// program is the server of Model Registry.
	program = "/registry"
	// upstream is the address of the catalog server in the pod.
	upstream = "127.0.0.1:8081"
	// dataFolder has the files of the data image.
	dataFolder = "/shared-data"
	// scratch is a directory that is writable even if the root file system is read-only.
	scratch = "/dev/shm"
	// headerTimeout limits the time for the headers of a request.
	headerTimeout = 10 * time.Second
)

func main() {
	err := run(os.Args[1:])
	fmt.Fprintln(os.Stderr, "catalog:", err)
	os.Exit(1)
}

func run(args []string) error {
	if len(args) == 0 || args[0] != "catalog" {
		return syscall.Exec(program, append([]string{program}, args...), os.Environ())
	}
	c, err := parse(args[1:])
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	file := filepath.Join(scratch, "sources.yaml")
	watchSources, err := c.writeSources(ctx, file)
	if err != nil {
		return err
	}
	go watchSources()
	server := exec.CommandContext(ctx, program, "catalog", "--listen="+upstream, "--catalogs-path="+file)
	server.Stdout, server.Stderr = os.Stdout, os.Stderr
	exited := make(chan error, 2)
	go func() { exited <- server.Run() }()
	go func() {
		listener := &http.Server{Addr: c.listen, Handler: c.handler(), ReadHeaderTimeout: headerTimeout}
		exited <- listener.ListenAndServe()
	}()
	return <-exited
}

// catalog has the arguments of the container.
type catalog struct {
	listen     string
	sources    []string
	benchmarks string
}

func parse(args []string) (*catalog, error) {
	c := &catalog{}
	flags := flag.NewFlagSet("catalog", flag.ContinueOnError)
	flags.StringVar(&c.listen, "listen", "", "address")
	flags.StringVar(&c.benchmarks, "performance-metrics", "", "folder")
	flags.Func("catalogs-path", "file of sources, several times", func(path string) error {
		c.sources = append(c.sources, path)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if c.listen == "" || c.benchmarks == "" || len(c.sources) == 0 || flags.NArg() > 0 {
		return nil, fmt.Errorf("incomplete arguments: %q", args)
	}
	return c, nil
}

func (c *catalog) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/api/", httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: upstream}))
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := c.ready(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		data, _ := filepath.Glob(dataFolder + "/*")                // the pattern is valid
		benchmarks, _ := filepath.Glob(c.benchmarks + "/*")        // the pattern is valid
		_ = json.NewEncoder(w).Encode(append(data, benchmarks...)) // an error means that the client has disconnected
	})
	return mux
}

// ready returns an error unless the server accepts connections and the database responds.
func (c *catalog) ready(ctx context.Context) error {
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", upstream)
	if err != nil {
		return fmt.Errorf("connecting to the server: %w", err)
	}
	_ = connection.Close()
	if err := checkDatabase(ctx); err != nil {
		return fmt.Errorf("connecting to the database: %w", err)
	}
	return nil
}
