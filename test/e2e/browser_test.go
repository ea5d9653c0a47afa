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

// picturesVariable is the environment variable with a folder of the checkout for screenshots.
const picturesVariable = "E2E_PICTURES"

var (
	//go:embed testdata/browser.yaml
	browserPod string
	//go:embed testdata/browser.py
	browserScript string
)

// startBrowser creates a pod with a browser. It does not wait until the pod is ready.
func startBrowser(ctx context.Context, namespace string) {
	GinkgoHelper()
	Expect(images.Browser(ctx, store)).To(Succeed())
	apply(ctx, namespace, browserPod)
}

// webPage is a page of a server that requires a token.
type webPage struct {
	url, token string
	// authority is the CA certificate of the server.
	authority string
	// picture is the file name of a screenshot, "" for none.
	picture string
}

// open opens the page in the browser of the namespace, and expects all texts on it.
func (p webPage) open(ctx context.Context, namespace string, texts ...string) {
	GinkgoHelper()
	waitPodReady(ctx, namespace, "browser")
	command := append([]string{"-n", namespace, "exec", "-i", "browser", "--", "python3", "-c", browserScript, p.url, p.token}, texts...)
	output, err := tryKubectl(ctx, p.authority, command...)
	Expect(err).NotTo(HaveOccurred())
	var rendered struct {
		Text    string
		Picture []byte
	}
	Expect(json.Unmarshal([]byte(output), &rendered)).To(Succeed())
	for _, text := range texts {
		Expect(rendered.Text).To(ContainSubstring(text))
	}
	if folder := os.Getenv(picturesVariable); folder != "" && p.picture != "" {
		Expect(os.MkdirAll(filepath.Join(checkout, folder), 0o755)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(checkout, folder, p.picture), rendered.Picture, 0o600)).To(Succeed())
	}
}
