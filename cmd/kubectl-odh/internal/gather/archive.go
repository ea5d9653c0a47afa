package gather

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"sync"
	"time"
)

// Bounds of an archive, in bytes before compression.
const (
	maxFile  = 10 << 20
	maxTotal = 200 << 20
)

// archive is a compressed tar file.
type archive struct {
	now time.Time

	mu    sync.Mutex
	zip   *gzip.Writer
	tar   *tar.Writer
	files int
	total int
	err   error
	// cut are files that are not whole.
	cut []string
}

func newArchive(out io.Writer, now time.Time) *archive {
	zip := gzip.NewWriter(out)
	return &archive{now: now, zip: zip, tar: tar.NewWriter(zip)}
}

// add writes a file, as far as there is room. The first error is kept for close.
func (a *archive) add(name, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if room := min(maxFile, maxTotal-a.total); len(text) > room {
		a.cut = append(a.cut, name)
		text = text[:room]
	}
	if a.err != nil || text == "" {
		return
	}
	a.files++
	a.total += len(text)
	a.err = a.tar.WriteHeader(&tar.Header{Name: "odh-gather/" + name, Mode: 0o644, Size: int64(len(text)), ModTime: a.now})
	if a.err == nil {
		_, a.err = io.WriteString(a.tar, text)
	}
}

func (a *archive) close() error {
	return errors.Join(a.err, a.tar.Close(), a.zip.Close())
}
