"""Score a real table that ships inside scikit-learn (569 biopsies, 30 measurements) and print the most anomalous rows.

The detector sees the measurements only; the diagnosis is printed beside its answer.
"""

from sklearn.datasets import load_breast_cancer

from rgld import RGLD

data = load_breast_cancer()
detector = RGLD(random_state=0).fit(data.data)
scores = detector.anomaly_score(data.data)
branches = detector.branch_scores(data.data)
outliers = (detector.predict(data.data) == -1).sum()

print(f"Breast cancer (Wisconsin): {len(scores)} biopsies, {data.data.shape[1]} measurements, no labels used.")
print(f"Scaling chosen: {detector.preprocessing_}. Outliers at the automatic threshold: {outliers}.\n")
print("  row   score  global   local  diagnosis   mean radius  mean area  worst concavity")
for row in scores.argsort()[::-1][:10]:
    radius, area, concavity = data.data[row, [0, 3, 26]]
    print(
        f"{row:5d}  {scores[row]:.4f}  {branches.global_score[row]:.4f}  {branches.local_score[row]:.4f}"
        f"  {data.target_names[data.target[row]]:<10} {radius:12.2f} {area:10.1f} {concavity:16.3f}"
    )
