package images

import (
	"archive/tar"
	"fmt"
	"io"
	"os"
	"strings"
)

// writeArchive writes files as a tar without timestamps, so equal files result in equal archives.
func writeArchive(w io.Writer, files []File) error {
	out := tar.NewWriter(w)
	for _, file := range files {
		if err := add(out, file); err != nil {
			return fmt.Errorf("adding %s: %w", file.Target, err)
		}
	}
	return out.Close()
}

func add(out *tar.Writer, file File) error {
	header := &tar.Header{Name: strings.TrimPrefix(file.Target, "/"), Mode: file.Mode, Uid: file.UID, Gid: file.GID, Typeflag: tar.TypeReg}
	if strings.HasSuffix(file.Target, "/") {
		header.Typeflag = tar.TypeDir
		return out.WriteHeader(header)
	}
	if file.Source == "" {
		header.Size = int64(len(file.Content))
		if err := out.WriteHeader(header); err != nil {
			return err
		}
		_, err := io.WriteString(out, file.Content)
		return err
	}
	source, err := os.Open(file.Source)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }() // read only
	info, err := source.Stat()
	if err != nil {
		return err
	}
	header.Size = info.Size()
	if err := out.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(out, source)
	return err
}
