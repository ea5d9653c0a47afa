//go:build e2e

package e2e_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/odh-platform/odh-platform-operator/test/node/images"
)

// picturesVariable names a folder below that of the project, for pictures of the pages that the browser opens.
const picturesVariable = "E2E_PICTURES"

var (
	//go:embed testdata/browser.yaml
	browserPod string
	//go:embed testdata/browser.py
	browserScript string
)

// startBrowser starts a pod with a browser, and does not wait for it.
func startBrowser(ctx context.Context, namespace string) {
	GinkgoHelper()
	Expect(images.Browser(ctx, store)).To(Succeed())
	apply(ctx, namespace, browserPod)
}

// webPage is a page of a server that wants a token.
type webPage struct {
	url, token string
	// authority signed the certificate of the server.
	authority string
	// picture is the name of a file, or empty.
	picture string
}

// open waits until the page shows all texts in the browser of a namespace.
func (p webPage) open(ctx context.Context, namespace string, texts ...string) {
	GinkgoHelper()
	podReady(ctx, namespace, "browser")
	command := append([]string{"-n", namespace, "exec", "-i", "browser", "--", "python3", "-c", browserScript, p.url, p.token}, texts...)
	output, err := tryKubectl(ctx, p.authority, command...)
	Expect(err).NotTo(HaveOccurred())
	var shown struct {
		Text    string
		Picture []byte
	}
	Expect(json.Unmarshal([]byte(output), &shown)).To(Succeed())
	for _, text := range texts {
		Expect(shown.Text).To(ContainSubstring(text))
	}
	if folder := os.Getenv(picturesVariable); folder != "" && p.picture != "" {
		Expect(os.MkdirAll(filepath.Join(checkout, folder), 0o755)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(checkout, folder, p.picture), shown.Picture, 0o600)).To(Succeed())
	}
}
