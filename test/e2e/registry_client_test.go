//go:build e2e

package e2e_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

//go:embed testdata/request.py
var requestScript string

// plainRegistry is the URL of the sample registry without a proxy.
const plainRegistry = "http://" + sample + ":8080"

// models is the path of registered models in the REST API.
const models = "/api/model_registry/v1alpha3/registered_models"

// registryClient calls the REST API of the sample registry from a pod in its namespace.
type registryClient struct{ namespace, base, token string }

// newRegistry creates the sample registry with its own database, waits until it is available, and returns a client of it.
func newRegistry(ctx context.Context, namespace string) *registryClient {
	GinkgoHelper()
	applyRegistry(ctx, namespace)
	startPod(ctx, namespace, "client", map[string]string{})
	kubectl(ctx, "-n", namespace, "wait", "--for=condition=Available", "modelregistry/"+sample, fmt.Sprint("--timeout=", podTimeout))
	return &registryClient{namespace: namespace, base: plainRegistry}
}

// applyRegistry creates the sample registry. It retries while another spec's registry of the same name is being deleted.
func applyRegistry(ctx context.Context, namespace string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) error {
		_, err := tryKubectl(ctx, "", "-n", namespace, "apply", "-f", filepath.Join(checkout, "config", "samples", "modelregistry_generated.yaml"))
		if err != nil && !strings.Contains(err.Error(), "already exists in namespace") {
			return StopTrying("the API server rejected the sample registry").Wrap(err)
		}
		return err
	}).Should(Succeed())
}

// request sends a request for registered models.
func (c *registryClient) request(ctx context.Context, method, path, body string) (status int, response string, err error) {
	output, err := tryKubectl(ctx, "", "-n", c.namespace, "exec", "client", "--", "python3", "-c", requestScript, method, c.base+models+path, c.token, body)
	if err != nil {
		return 0, "", err
	}
	first, response, _ := strings.Cut(output, "\n")
	status, err = strconv.Atoi(first)
	return status, response, err
}

func (c *registryClient) names(ctx context.Context) ([]string, error) {
	var names []string
	for token := ""; ; {
		status, body, err := c.request(ctx, http.MethodGet, "?pageSize=1000&nextPageToken="+url.QueryEscape(token), "")
		if err != nil {
			return nil, err
		}
		if status != http.StatusOK {
			return nil, fmt.Errorf("listing models: %d %s", status, body)
		}
		var page struct {
			Items         []struct{ Name string }
			NextPageToken string
		}
		if err := json.Unmarshal([]byte(body), &page); err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			names = append(names, item.Name)
		}
		if token = page.NextPageToken; token == "" {
			return names, nil
		}
	}
}

// missing returns the names that the registry does not store.
func (c *registryClient) missing(ctx context.Context, names []string) []string {
	GinkgoHelper()
	var stored []string
	Eventually(ctx, func(ctx context.Context) (err error) {
		stored, err = c.names(ctx)
		return err
	}).Should(Succeed())
	isStored := map[string]bool{}
	for _, name := range stored {
		isStored[name] = true
	}
	var missing []string
	for _, name := range names {
		if !isStored[name] {
			missing = append(missing, name)
		}
	}
	return missing
}

// createCertificate creates a self-signed certificate in the client pod, which trusts it, and a Secret with the certificate.
func (c *registryClient) createCertificate(ctx context.Context, secret string) {
	GinkgoHelper()
	_, err := runInPod(ctx, c.namespace, "client", "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=registry "+
		"-addext subjectAltName=DNS:"+sample+" -keyout /data/tls.key -out /data/tls.crt")
	Expect(err).NotTo(HaveOccurred())
	dir := GinkgoT().TempDir()
	for _, file := range []string{"tls.crt", "tls.key"} {
		content, err := runInPod(ctx, c.namespace, "client", "cat /data/"+file)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600)).To(Succeed())
	}
	kubectl(ctx, "-n", c.namespace, "create", "secret", "tls", secret, "--cert="+filepath.Join(dir, "tls.crt"), "--key="+filepath.Join(dir, "tls.key"))
}
