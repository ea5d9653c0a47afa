//go:build e2e

package e2e_test

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

//go:embed testdata/mlflow_training.py
var mlflowTraining string

// expectRunPages logs a run and opens its pages in the browser of the namespace, as a user of the team.
func (t mlflowTeam) expectRunPages(ctx context.Context) {
	GinkgoHelper()
	output, err := t.python(ctx, t.namespace, mlflowTraining)
	Expect(err).NotTo(HaveOccurred())
	words := strings.Fields(output)
	experiment, run := words[len(words)-2], words[len(words)-1]
	url := fmt.Sprintf("https://mlflow.%s.svc:8443/mlflow/#/experiments/%s/runs/%s", operatorNamespace, experiment, run)
	page := webPage{token: t.token(ctx, "ana"), authority: mlflowCA(ctx)}

	page.url = url + "?workspace=" + t.namespace
	page.open(ctx, t.namespace, "credit-risk", "gradient-boosting", run, "auc\n0.94", "max_depth\n6")

	page.url = url + "/model-metrics?workspace=" + t.namespace
	page.open(ctx, t.namespace, "gradient-boosting (loss)", "auc\n0.94", "accuracy\n0\n20\n40", "loss\n0\n20\n40") // charts with their axes
}
