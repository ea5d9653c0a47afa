package cluster

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// AssetsVariable is the environment variable with a folder of programs, as in envtest of controller-runtime.
const AssetsVariable = "KUBEBUILDER_ASSETS"

const (
	// responseTimeout is the time after which programs are compiled if their server does not respond.
	responseTimeout = 3 * time.Second
	// progressPeriod is the period in which a download has to receive minBytes. A slower download takes longer than compiling.
	progressPeriod = 10 * time.Second
	minBytes       = 8 << 20
)

// archive is a file published by a project.
type archive struct {
	url, sum string
	// programs are the paths of the programs in the archive, which end in their names. A file other than a tar.gz is a program itself.
	programs []string
}

// published lists the archives by operating system and architecture. It contains only files with publicly documented checksums.
// Therefore, Kubernetes and etcd differ by a patch release from the compiled ones, and Kubernetes for arm64 is missing.
//
//   - Kubernetes: https://dl.k8s.io/v1.37.1/kubernetes-server-linux-amd64.tar.gz.sha256
//   - etcd: https://github.com/etcd-io/etcd/releases/download/v3.7.1/SHA256SUMS, which the etcd cookbook of Sous Chefs also pins
//   - kwok: the digests of its release, which nixpkgs and the package kwok-bin of Arch Linux also pin
var published = map[string][]archive{
	"linux/amd64": {
		{"https://github.com/etcd-io/etcd/releases/download/v3.7.1/etcd-v3.7.1-linux-amd64.tar.gz",
			"e8cd3fa8064c98137c5dbd78b76f969417ace84efb83c481041d7a52ffdd8fb9", []string{"etcd-v3.7.1-linux-amd64/etcd"}},
		{"https://dl.k8s.io/v1.37.1/kubernetes-server-linux-amd64.tar.gz",
			"09d6de07da48e16c0fc044d7bd19c5df0c4de7d62d27f5aa648345e80f311e18", []string{
				"kubernetes/server/bin/kube-apiserver", "kubernetes/server/bin/kube-controller-manager",
				"kubernetes/server/bin/kube-scheduler", "kubernetes/server/bin/kubectl",
			}},
		{"https://github.com/kubernetes-sigs/kwok/releases/download/v0.8.0/kwok-linux-amd64",
			"f5a4385a2ae1b9dd7f8acae18e002a75c0ebba124ae9d7259aa8dadb50711f46", []string{"kwok"}},
	},
	"linux/arm64": {
		{"https://github.com/etcd-io/etcd/releases/download/v3.7.1/etcd-v3.7.1-linux-arm64.tar.gz",
			"d7e25e08f694b6ed7792fc7b7a891fe2c3f3d3dccfe2f3bfdb1547b0eb75b6da", []string{"etcd-v3.7.1-linux-arm64/etcd"}},
		{"https://github.com/kubernetes-sigs/kwok/releases/download/v0.8.0/kwok-linux-arm64",
			"628f7d277860f524a2a775c217adcc58828e7b59ab0933680315784f1b8b0e37", []string{"kwok"}},
	},
}

// store provides programs of the user and published programs, which it downloads.
type store struct {
	assets   string // folder with programs of the user, or ""
	cache    string
	archives []archive
	client   *http.Client
	// responseTimeout limits the time until a server responds.
	responseTimeout time.Duration
	// progressPeriod is the period in which at least minBytes must be received.
	progressPeriod time.Duration
	minBytes       int64
}

func newStore() (*store, error) {
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	return &store{
		assets: os.Getenv(AssetsVariable), cache: filepath.Join(cache, "binaries"), archives: published[runtime.GOOS+"/"+runtime.GOARCH],
		client:          &http.Client{}, // through HTTPS_PROXY, if set
		responseTimeout: responseTimeout, progressPeriod: progressPeriod, minBytes: minBytes,
	}, nil
}

func (s *store) folder(a archive) string {
	return filepath.Join(s.cache, "downloaded-"+a.sum[:keyLength])
}

// program returns the path of a program of the user or of a downloaded one.
func (s *store) program(name string) (string, bool) {
	if s == nil {
		return "", false
	}
	var paths []string
	if s.assets != "" {
		paths = append(paths, filepath.Join(s.assets, name))
	}
	for _, a := range s.archives {
		paths = append(paths, filepath.Join(s.folder(a), name))
	}
	index := slices.IndexFunc(paths, func(file string) bool {
		info, err := os.Stat(file)
		return err == nil && info.Mode().IsRegular()
	})
	if index < 0 {
		return "", false
	}
	return paths[index], true
}

// download downloads the archives that contain one of the programs, and supplies the programs in each as soon as its checksum is verified.
// It logs failed downloads, with one line for all failed requests.
func (s *store) download(ctx context.Context, programs []string, to *supply, logf func(string, ...any)) {
	var selected []archive
	for _, a := range s.archives {
		if slices.ContainsFunc(a.programs, func(p string) bool { return slices.Contains(programs, path.Base(p)) }) {
			selected = append(selected, a)
		}
	}
	if len(selected) == 0 {
		return
	}
	transfers, requestErrs := s.connect(ctx, selected)
	if len(requestErrs) > 0 {
		logf("compiling the programs that cannot be downloaded: %v", requestErrs[0])
	}
	var group sync.WaitGroup
	for _, t := range transfers {
		logf("downloading %s, %s", path.Base(t.url), t.sizeText())
		group.Go(func() {
			if err := s.receive(ctx, t, logf); err != nil {
				logf("compiling instead of downloading %s: %v", t.url, err)
				return
			}
			for _, p := range t.programs {
				if slices.Contains(programs, path.Base(p)) {
					to.add(path.Base(p), filepath.Join(s.folder(t.archive), path.Base(p)))
				}
			}
		})
	}
	group.Wait()
}

// transfer is a download in progress.
type transfer struct {
	archive
	body   io.ReadCloser
	size   int64 // -1 if unknown
	read   atomic.Int64
	cancel context.CancelFunc
}

func (t *transfer) sizeText() string {
	if t.size < 0 {
		return "unknown size"
	}
	return fmt.Sprintf("%d MB", t.size>>20)
}

func (t *transfer) Read(into []byte) (int, error) {
	count, err := t.body.Read(into)
	t.read.Add(int64(count))
	return count, err
}

// connect requests all archives in parallel.
func (s *store) connect(ctx context.Context, archives []archive) (transfers []*transfer, errs []error) {
	var group sync.WaitGroup
	var mutex sync.Mutex
	for _, a := range archives {
		group.Go(func() {
			t, err := s.openTransfer(ctx, a)
			mutex.Lock()
			defer mutex.Unlock()
			if err != nil {
				errs = append(errs, err)
				return
			}
			transfers = append(transfers, t)
		})
	}
	group.Wait()
	return transfers, errs
}

func (s *store) openTransfer(ctx context.Context, a archive) (*transfer, error) {
	ctx, cancel := context.WithCancel(ctx)
	t := &transfer{archive: a, cancel: cancel}
	timer := time.AfterFunc(s.responseTimeout, cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("requesting %s: %w", a.url, err)
	}
	response, err := s.client.Do(request)
	if !timer.Stop() {
		err = fmt.Errorf("no response from %s within %s", request.URL.Host, s.responseTimeout)
	}
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("requesting %s: %s", a.url, response.Status)
	}
	if err != nil {
		cancel()
		if response != nil {
			err = errors.Join(err, response.Body.Close())
		}
		return nil, err
	}
	t.body, t.size = response.Body, response.ContentLength
	return t, nil
}

// receive writes the programs of an archive. After it has verified the checksum, it makes them executable and moves them to their paths.
func (s *store) receive(ctx context.Context, t *transfer, logf func(string, ...any)) (err error) {
	watchEnded, done := make(chan struct{}), make(chan struct{})
	var slowErr error
	go func() {
		slowErr = s.watch(ctx, t, done, logf)
		close(watchEnded)
	}()
	defer func() {
		close(done)
		<-watchEnded
		t.cancel()
		err = cmp.Or(slowErr, errors.Join(err, t.body.Close()))
	}()
	partial := s.folder(t.archive) + ".partial"
	if err := errors.Join(os.RemoveAll(partial), os.MkdirAll(partial, 0o755)); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(partial) }() // the next download also removes it
	hash := sha256.New()
	stream := io.TeeReader(t, hash)
	if err := t.unpack(stream, partial); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, stream); err != nil {
		return err
	}
	if sum := hex.EncodeToString(hash.Sum(nil)); sum != t.sum {
		return fmt.Errorf("got checksum %s, want %s; the file is deleted", sum, t.sum)
	}
	for _, p := range t.programs {
		if err := os.Chmod(filepath.Join(partial, path.Base(p)), 0o755); err != nil {
			return err
		}
	}
	return errors.Join(os.RemoveAll(s.folder(t.archive)), os.Rename(partial, s.folder(t.archive)))
}

// watch logs the progress of a download, and cancels it if it is slow.
func (s *store) watch(ctx context.Context, t *transfer, done chan struct{}, logf func(string, ...any)) error {
	ticker := time.NewTicker(s.progressPeriod)
	defer ticker.Stop()
	for last := int64(0); ; {
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		read := t.read.Load()
		if read-last < s.minBytes && read != t.size {
			t.cancel()
			return fmt.Errorf("received only %d MB in %s", (read-last)>>20, s.progressPeriod)
		}
		last = read
		logf("downloading %s: %d MB of %s", path.Base(t.url), read>>20, t.sizeText())
	}
}

// unpack writes the programs of an archive into a folder. It stops reading after the last of them.
func (t *transfer) unpack(stream io.Reader, folder string) error {
	if !strings.HasSuffix(t.url, ".tar.gz") {
		return writeProgram(stream, filepath.Join(folder, path.Base(t.programs[0])))
	}
	plain, err := gzip.NewReader(stream)
	if err != nil {
		return err
	}
	missing := slices.Clone(t.programs)
	for reader := tar.NewReader(plain); len(missing) > 0; {
		header, err := reader.Next()
		if err != nil {
			return fmt.Errorf("searching the archive for %s: %w", strings.Join(missing, ", "), err)
		}
		index := slices.Index(missing, path.Clean(header.Name))
		if index < 0 {
			continue
		}
		if err := writeProgram(reader, filepath.Join(folder, path.Base(missing[index]))); err != nil {
			return err
		}
		missing = slices.Delete(missing, index, index+1)
	}
	return nil
}

func writeProgram(from io.Reader, name string) error {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, from)
	return errors.Join(err, file.Close())
}
