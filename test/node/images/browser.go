package images

import "context"

// BrowserImage has a headless browser.
const BrowserImage = "localhost/browser:latest"

// Browser builds an image with Chromium, certutil to add CAs to its trust store, and Python to control it.
func Browser(ctx context.Context, s Store) error {
	layer, err := s.debian(ctx, "ca-certificates", "chromium", "fonts-dejavu-core", "libnss3-tools", "python3")
	if err != nil {
		return err
	}
	return s.Pack(Image{Layers: []Digest{layer}, Process: Process{User: "1001:0", Env: []string{"HOME=/tmp"}}}, BrowserImage)
}
