# The example model of scikit-learn that ModelMesh ships: handwritten digits of 8 by 8 pixels.
import os

import joblib
from sklearn import datasets, svm

bucket = "/data1/modelmesh-example-models"
os.makedirs(bucket + "/sklearn")
pixels, digits = datasets.load_digits(return_X_y=True)
joblib.dump(svm.SVC(gamma=0.001, C=100).fit(pixels, digits), bucket + "/sklearn/mnist-svm.joblib")
for folder in ("/data1", bucket):
    os.chmod(folder, 0o775)  # the object store runs in the group of the owner
