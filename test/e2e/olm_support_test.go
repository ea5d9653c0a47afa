//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/docs"
	"github.com/odh-platform/odh-platform-operator/test/node/images"
)

const (
	// olmNamespace is that of OLM and of the catalog.
	olmNamespace = "olm"
	// csvTimeout is how long OLM may take from a Subscription to a running operator; it repeats some steps only after minutes.
	csvTimeout = 10 * time.Minute
	// askEvery is the pause between requests to a registry.
	askEvery = 200 * time.Millisecond
)

// olmCluster is a cluster with OLM, whose catalog comes from the registry of a release.
type olmCluster struct {
	*release
	// subscription is what the page has its reader apply, of version 0.2.0.
	subscription string
}

// newOLM starts the cluster with OLM.
func newOLM(ctx context.Context) *olmCluster {
	GinkgoHelper()
	o := &olmCluster{release: newRelease(ctx, "docs/olm.md")}
	// The page is about OpenShift and says what is different on other clusters. A setting that is part of servers would roll them during an
	// upgrade, see there.
	o.page.Replace = strings.NewReplacer(exampleRegistry, o.registry, "openshift-marketplace", olmNamespace,
		"      - {name: MLFLOW_URL, value: \"https://mlflow.apps.example.com\"}\n", "")
	o.page.Meets = append(o.page.Meets, "olm")
	programs, err := cluster.BuildOLM(ctx, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	store, err := o.Images()
	Expect(err).NotTo(HaveOccurred())
	Expect(images.OLM(ctx, store, programs)).To(Succeed())
	o.installOLM(ctx)
	return o
}

// installOLM applies the chart of OLM, without the catalog of OperatorHub, which is on the internet.
func (o *olmCluster) installOLM(ctx context.Context) {
	GinkgoHelper()
	files, err := cluster.OLMFiles(ctx)
	Expect(err).NotTo(HaveOccurred())
	helm, err := cluster.BuildPeer(ctx, cluster.Helm, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	const image = "image.ref=" + images.OLMImage
	command := exec.CommandContext(ctx, helm, "template", "olm", filepath.Join(files, "deploy", "chart"), "--values", filepath.Join(files, "deploy", "upstream", "values.yaml"),
		"--set", "olm."+image+",catalog."+image+",package."+image+",package.replicaCount=1,installType=offline")
	command.Stderr = GinkgoWriter
	manifests, err := command.Output()
	Expect(err).NotTo(HaveOccurred())

	o.kubectl(ctx, "apply", "--server-side", "-f", filepath.Join(files, "deploy", "chart", "crds"))
	o.kubectl(ctx, "wait", "crd", "--all", "--for=condition=Established", fmt.Sprint("--timeout=", podTimeout))
	_, err = o.Kubectl(ctx, string(manifests), "apply", "--server-side", "-f", "-")
	Expect(err).NotTo(HaveOccurred())
	o.olmReady(ctx)
}

// olmReady waits until OLM runs, and its server of packages, which it installs itself.
func (o *olmCluster) olmReady(ctx context.Context) {
	GinkgoHelper()
	for _, name := range []string{"olm-operator", "catalog-operator"} {
		o.kubectl(ctx, "-n", olmNamespace, "rollout", "status", "deployment/"+name, fmt.Sprint("--timeout=", podTimeout))
	}
	o.succeeds(ctx, olmNamespace, "packageserver")
}

// succeeds waits until an operator runs that OLM installs.
func (o *olmCluster) succeeds(ctx context.Context, namespace, csv string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) (string, error) {
		return o.Kubectl(ctx, "", "-n", namespace, "get", "csv", csv, "-o", "jsonpath={.status.phase}")
	}, csvTimeout).Should(Equal("Succeeded"))
}

// pack types how the page makes a release, of another version.
func (o *olmCluster) pack(ctx context.Context, version string) {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(checkout, o.page.Page))
	Expect(err).NotTo(HaveOccurred())
	for _, block := range docs.Blocks(string(text)) {
		if block.Value("needs") == "registry" {
			for _, command := range block.Commands() {
				o.page.Type(ctx, strings.ReplaceAll(command, "VERSION=0.2.0", "VERSION="+version))
			}
		}
	}
}

// subscribe applies what the page says, with the catalog of a version.
func (o *olmCluster) subscribe(ctx context.Context, version string) {
	GinkgoHelper()
	_, err := o.Kubectl(ctx, strings.ReplaceAll(o.subscription, ":v0.2.0", ":v"+version), "apply", "-f", "-")
	Expect(err).NotTo(HaveOccurred())
}

// serveStoredVersion types what the page says to do before an installation while registries exist.
func (o *olmCluster) serveStoredVersion(ctx context.Context) {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(checkout, o.page.Page))
	Expect(err).NotTo(HaveOccurred())
	for _, block := range docs.Blocks(string(text)) {
		if block.Value("needs") == "trouble" {
			o.page.Type(ctx, block.Commands()[0])
		}
	}
	Expect(o.kubectl(ctx, "get", "crd", "modelregistries.modelregistry.opendatahub.io", "-o", "jsonpath={.spec.versions[*].served}")).To(ContainSubstring("false"))
}

func csvName(version string) string { return "odh-platform-operator.v" + version }

// csv reads a ClusterServiceVersion.
func (o *olmCluster) csv(ctx context.Context, version string) *v1alpha1.ClusterServiceVersion {
	GinkgoHelper()
	csv := &v1alpha1.ClusterServiceVersion{}
	Expect(yaml.Unmarshal([]byte(o.kubectl(ctx, "-n", operatorNamespace, "get", "csv", csvName(version), "-o", "yaml")), csv)).To(Succeed())
	return csv
}

// refuses waits until a dry run is refused, with a text.
func (o *olmCluster) refuses(ctx context.Context, manifest, text string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) error {
		_, err := o.Kubectl(ctx, manifest, "-n", kept, "create", "--dry-run=server", "-f", "-")
		return err
	}, podTimeout).Should(MatchError(ContainSubstring(text)))
}

// operands lists the running pods that the operator made, with their restarts and since when they are ready.
func (o *olmCluster) operands(ctx context.Context) string {
	GinkgoHelper()
	const columns = `jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.status.containerStatuses[*].restartCount} ` +
		`{.status.conditions[?(@.type=="Ready")]}{"\n"}{end}`
	const running = "--field-selector=status.phase=Running"
	return o.kubectl(ctx, "-n", kept, "get", "pods", running, "-o", columns) + "\n" +
		o.kubectl(ctx, "-n", operatorNamespace, "get", "pods", running, "--selector=!control-plane", "-o", columns)
}

// leftOver lists what OLM made for the operator, other than CRDs and the roles for users, which it leaves.
func (o *olmCluster) leftOver(ctx context.Context) (string, error) {
	global, err := o.Kubectl(ctx, "", "get", "clusterroles,clusterrolebindings,mutatingwebhookconfigurations,validatingwebhookconfigurations", "-o", "name",
		"--selector=olm.owner.kind=ClusterServiceVersion,olm.owner.namespace="+operatorNamespace)
	if err != nil {
		return "", err
	}
	const kinds = "roles,rolebindings,serviceaccounts,services,deployments,configmaps,secrets,networkpolicies,poddisruptionbudgets"
	local, err := o.Kubectl(ctx, "", "-n", operatorNamespace, "get", kinds, "-o", "name", "--selector=olm.managed=true")
	return strings.TrimSpace(global + "\n" + local), err
}

// asks asks the registry again and again, until the function that it returns is called, which gives the number of answers and what went wrong.
func (o *olmCluster) asks(ctx context.Context) (stop func() (int, error)) {
	GinkgoHelper()
	config, err := o.Config()
	Expect(err).NotTo(HaveOccurred())
	client, err := rest.HTTPClientFor(config)
	Expect(err).NotTo(HaveOccurred())
	asking, cancel := context.WithCancel(ctx)
	DeferCleanup(cancel)
	var (
		ended    sync.WaitGroup
		answers  int
		failures []error
	)
	ended.Go(func() {
		pause := time.NewTicker(askEvery)
		defer pause.Stop()
		for {
			select {
			case <-asking.Done():
				return
			case <-pause.C:
			}
			if err := askOnce(ctx, client, o.URL()+registryPath); err != nil {
				failures = append(failures, err)
				continue
			}
			answers++
		}
	})
	return func() (int, error) {
		cancel()
		ended.Wait()
		return answers, errors.Join(failures...)
	}
}

// askOnce checks that the registry lists the model.
func askOnce(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK || !strings.Contains(string(body), "credit-risk") {
		return fmt.Errorf("%s %s: %s", time.Now().Format(time.TimeOnly), response.Status, body)
	}
	return nil
}

// describeFailure prints what OLM says.
func (o *olmCluster) describeFailure(ctx context.Context) {
	if !CurrentSpecReport().Failed() {
		return
	}
	for _, args := range [][]string{
		{"get", "catalogsources,subscriptions,installplans,csv,pods,jobs", "-A", "-o", "wide"},
		{"-n", operatorNamespace, "get", "subscriptions,installplans,csv", "-o", `jsonpath={range .items[*]}{.kind} {.metadata.name} {.status.phase} {.status.conditions}{"\n"}{end}`},
		{"get", "events", "-A", "--sort-by=.lastTimestamp"},
		{"-n", olmNamespace, "logs", "deployment/catalog-operator", "--tail=60"},
		{"-n", olmNamespace, "logs", "deployment/olm-operator", "--tail=60"},
		{"-n", operatorNamespace, "logs", managerDeployment, "--tail=50"},
	} {
		output, err := o.Kubectl(ctx, "", args...)
		GinkgoWriter.Println(output, err)
	}
}
