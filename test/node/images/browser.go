package images

import "context"

// BrowserImage has a browser without a screen.
const BrowserImage = "localhost/browser:latest"

// Browser makes an image with Chromium, certutil to tell it whom to trust, and Python to drive it.
func Browser(ctx context.Context, s Store) error {
	layer, err := s.debian(ctx, "ca-certificates", "chromium", "fonts-dejavu-core", "libnss3-tools", "python3")
	if err != nil {
		return err
	}
	return s.Pack(Image{Layers: []Digest{layer}, Process: Process{User: "1001:0", Env: []string{"HOME=/tmp"}}}, BrowserImage)
}
