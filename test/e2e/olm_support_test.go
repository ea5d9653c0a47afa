//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
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
	"github.com/odh-platform/odh-platform-operator/test/node/images"
)

const (
	// olmNamespace is the namespace of OLM and of the catalog.
	olmNamespace = "olm"
	// subscription is the file that docs/olm.md names for the CatalogSource and the Subscription.
	subscription = "subscription.yaml"
	// csvTimeout limits the time from a Subscription to a running operator: OLM retries some steps only after minutes.
	csvTimeout = 10 * time.Minute
	// requestInterval is the interval of requests to a registry.
	requestInterval = 200 * time.Millisecond
)

// olmCluster is a cluster with OLM and a catalog from the registry of a release.
type olmCluster struct{ *release }

func newOLM(ctx context.Context) *olmCluster {
	GinkgoHelper()
	o := &olmCluster{release: newRelease(ctx, "docs/olm.md")}
	// The page describes OpenShift and the differences of other clusters. MLFLOW_URL is removed: it is part of the pod templates of
	// servers, and OLM may run the old version without it during the upgrade, which would replace their pods.
	o.page.Replace = strings.NewReplacer(exampleRegistry, o.registry, "openshift-marketplace", olmNamespace,
		"      - {name: MLFLOW_URL, value: \"https://mlflow.apps.example.com\"}\n", "")
	o.page.Satisfied = append(o.page.Satisfied, "olm")
	programs, err := cluster.BuildOLM(ctx, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	store, err := o.Images()
	Expect(err).NotTo(HaveOccurred())
	Expect(images.OLM(ctx, store, programs)).To(Succeed())
	o.installOLM(ctx)
	return o
}

// installOLM applies the chart of OLM without the OperatorHub catalog, which requires internet access.
func (o *olmCluster) installOLM(ctx context.Context) {
	GinkgoHelper()
	files, err := cluster.OLMDir(ctx)
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
	o.applyServerSide(ctx, string(manifests))
	o.waitOLMReady(ctx)
}

// waitOLMReady waits until OLM and its packageserver are ready.
func (o *olmCluster) waitOLMReady(ctx context.Context) {
	GinkgoHelper()
	for _, name := range []string{"olm-operator", "catalog-operator"} {
		o.waitRollout(ctx, olmNamespace, "deployment/"+name)
	}
	o.waitSucceeded(ctx, olmNamespace, "packageserver")
}

// waitSucceeded waits until a ClusterServiceVersion has succeeded.
func (o *olmCluster) waitSucceeded(ctx context.Context, namespace, csv string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) (string, error) {
		return o.Kubectl(ctx, "", "-n", namespace, "get", "csv", csv, "-o", "jsonpath={.status.phase}")
	}, csvTimeout).Should(Equal("Succeeded"))
}

// serveStoredVersion runs the commands of the page for a cluster with existing registries.
func (o *olmCluster) serveStoredVersion(ctx context.Context) {
	GinkgoHelper()
	for _, command := range o.commands("trouble") {
		o.page.Type(ctx, command)
	}
	Expect(o.kubectl(ctx, "get", "crd", "modelregistries.modelregistry.opendatahub.io", "-o", "jsonpath={.spec.versions[*].served}")).To(ContainSubstring("false"))
}

func csvName(version string) string { return "odh-platform-operator.v" + version }

func (o *olmCluster) csv(ctx context.Context, version string) *v1alpha1.ClusterServiceVersion {
	GinkgoHelper()
	csv := &v1alpha1.ClusterServiceVersion{}
	Expect(yaml.Unmarshal([]byte(o.kubectl(ctx, "-n", operatorNamespace, "get", "csv", csvName(version), "-o", "yaml")), csv)).To(Succeed())
	return csv
}

// listOperands returns the running pods of operands, with their restarts and their Ready conditions.
func (o *olmCluster) listOperands(ctx context.Context) string {
	GinkgoHelper()
	const columns = `jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.status.containerStatuses[*].restartCount} ` +
		`{.status.conditions[?(@.type=="Ready")]}{"\n"}{end}`
	const running = "--field-selector=status.phase=Running"
	return o.kubectl(ctx, "-n", userNamespace, "get", "pods", running, "-o", columns) + "\n" +
		o.kubectl(ctx, "-n", operatorNamespace, "get", "pods", running, "--selector=!control-plane", "-o", columns)
}

// listOLMObjects returns the objects that OLM created for the operator, without CRDs and the roles for users, which OLM does not
// delete.
func (o *olmCluster) listOLMObjects(ctx context.Context) (string, error) {
	global, err := o.Kubectl(ctx, "", "get", "clusterroles,clusterrolebindings,mutatingwebhookconfigurations,validatingwebhookconfigurations", "-o", "name",
		"--selector=olm.owner.kind=ClusterServiceVersion,olm.owner.namespace="+operatorNamespace)
	if err != nil {
		return "", err
	}
	const kinds = "roles,rolebindings,serviceaccounts,services,deployments,configmaps,secrets,networkpolicies,poddisruptionbudgets"
	local, err := o.Kubectl(ctx, "", "-n", operatorNamespace, "get", kinds, "-o", "name", "--selector=olm.managed=true")
	return strings.TrimSpace(global + "\n" + local), err
}

// startRequests sends requests to the registry in the background. The returned function stops them and returns the number of responses and
// all errors.
func (o *olmCluster) startRequests(ctx context.Context) (stop func() (int, error)) {
	GinkgoHelper()
	config, err := o.Config()
	Expect(err).NotTo(HaveOccurred())
	client, err := rest.HTTPClientFor(config)
	Expect(err).NotTo(HaveOccurred())
	requestCtx, cancel := context.WithCancel(ctx)
	DeferCleanup(cancel)
	var (
		done      sync.WaitGroup
		responses int
		failures  []error
	)
	done.Go(func() {
		ticker := time.NewTicker(requestInterval)
		defer ticker.Stop()
		for {
			select {
			case <-requestCtx.Done():
				return
			case <-ticker.C:
			}
			if err := requestModels(ctx, client, o.URL()+registryPath); err != nil {
				failures = append(failures, err)
				continue
			}
			responses++
		}
	})
	return func() (int, error) {
		cancel()
		done.Wait()
		return responses, errors.Join(failures...)
	}
}

// requestModels returns an error unless the registry lists the model.
func requestModels(ctx context.Context, client *http.Client, url string) error {
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

// describeFailure prints the status and logs of OLM after a failure.
func (o *olmCluster) describeFailure(ctx context.Context) {
	if o == nil { // the cluster could not be started
		return
	}
	printIfFailed(ctx, o.Kubectl, [][]string{
		{"get", "catalogsources,subscriptions,installplans,csv,pods,jobs", "-A", "-o", "wide"},
		{"-n", operatorNamespace, "get", "subscriptions,installplans,csv", "-o", `jsonpath={range .items[*]}{.kind} {.metadata.name} {.status.phase} {.status.conditions}{"\n"}{end}`},
		{"get", "events", "-A", "--sort-by=.lastTimestamp"},
		{"-n", olmNamespace, "logs", "deployment/catalog-operator", "--tail=60"},
		{"-n", olmNamespace, "logs", "deployment/olm-operator", "--tail=60"},
		{"-n", operatorNamespace, "logs", managerDeployment, "--tail=50"},
	})
}
