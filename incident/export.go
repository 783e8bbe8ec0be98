package incident

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// Export writes the folder of an incident to w as one .tar.gz, to be attached
// to a ticket. The same folder gives the same bytes.
func (s *Store) Export(id string, w io.Writer) error {
	files, err := s.Files(id)
	if err != nil {
		return err
	}
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	for _, f := range files {
		if err := s.exportFile(t, id, f.Name); err != nil {
			return fmt.Errorf("export of %s: %w", id, err)
		}
	}
	return errors.Join(t.Close(), z.Close())
}

func (s *Store) exportFile(t *tar.Writer, id, name string) error {
	f, err := s.File(id, name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	h := &tar.Header{
		Typeflag: tar.TypeReg, Name: id + "/" + name, Mode: fileMode, Size: fi.Size(),
		ModTime: fi.ModTime().Truncate(1e9), Format: tar.FormatPAX,
	}
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	// A file that grows meanwhile would break the archive; files are replaced,
	// never appended to, so the open one keeps its size.
	_, err = io.CopyN(t, f, fi.Size())
	return err
}
