// Package parity checks that charts/mlflow and the builders of the operator create the same objects.
package parity

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

// Dir returns the directory of the chart.
func Dir() (string, error) {
	root, err := cluster.RepositoryRoot()
	return filepath.Join(root, "charts", "mlflow"), err
}

// Load loads the chart.
func Load() (*chart.Chart, error) {
	dir, err := Dir()
	if err != nil {
		return nil, err
	}
	loaded, err := loader.Load(dir)
	if err != nil {
		return nil, fmt.Errorf("loading the chart: %w", err)
	}
	return loaded, nil
}

// Release has the parameters of an installation in addition to the values.
type Release struct {
	// Namespace of the release.
	Namespace string
	// APIVersions that the cluster serves in addition to those of Kubernetes, such as monitoring.coreos.com/v1.
	APIVersions []string
	// Cluster is the cluster for the lookup function; nil disables it.
	Cluster *rest.Config
	// SkipSchema disables the validation of values against the schema.
	SkipSchema bool
}

// Texts renders the templates of the chart, by file name.
func Texts(ctx context.Context, c *chart.Chart, release Release, values map[string]any) (map[string]string, error) {
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.APIVersions = append(slices.Clone(capabilities.APIVersions), release.APIVersions...)
	options := common.ReleaseOptions{Name: "mlflow", Namespace: release.Namespace, IsInstall: true, Revision: 1}
	all, err := util.ToRenderValuesWithSchemaValidation(c, values, options, capabilities, release.SkipSchema)
	if err != nil {
		return nil, err
	}
	var renderer engine.Engine
	if release.Cluster != nil {
		renderer = engine.New(release.Cluster)
	}
	texts, err := renderer.RenderWithContext(ctx, c, all)
	if err != nil {
		return nil, err
	}
	byFile := map[string]string{}
	for name, text := range texts {
		byFile[filepath.Base(name)] = text
	}
	return byFile, nil
}

// Render renders the objects of the chart, sorted by [Key].
func Render(ctx context.Context, c *chart.Chart, release Release, values map[string]any) ([]*unstructured.Unstructured, error) {
	texts, err := Texts(ctx, c, release, values)
	if err != nil {
		return nil, err
	}
	delete(texts, "NOTES.txt")
	var objects []*unstructured.Unstructured
	for file, text := range texts {
		for _, manifest := range releaseutil.SplitManifests(text) {
			object := &unstructured.Unstructured{}
			if err := yaml.UnmarshalStrict([]byte(manifest), &object.Object); err != nil {
				return nil, fmt.Errorf("decoding the output of %s: %w\n%s", file, err, manifest)
			}
			objects = append(objects, object)
		}
	}
	slices.SortFunc(objects, func(a, b *unstructured.Unstructured) int { return strings.Compare(Key(a), Key(b)) })
	return objects, nil
}

// Key returns kind, namespace and name of an object.
func Key(o *unstructured.Unstructured) string {
	return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
}
