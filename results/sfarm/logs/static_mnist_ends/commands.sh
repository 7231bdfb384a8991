# What ran, in this order, on one H200, in the tree of 90358cd (records name dbc8c84-dirty, where the machine's copy had begun).
# 1. The long run; stopped after 24,000 of its steps, as validation rose; "trunk" is what `keep` had of its checkpoint of step 20,000.
LONG=740 BRANCH=230 BRANCHES="1 2" MORE="--raster 0.4" bash experiments/runs/pictures.sh data W END
# 2. Ends of it; branch2 was stopped after 5,000 steps.
export ANYFILL_DATA=data PYTHONPATH=src:. TORCHINDUCTOR_CACHE_DIR=W/inductor TRITON_CACHE_DIR=W/triton
m="python3 -m experiments.sfarm.static_mnist"
o="--tokens patches --batch 128 --width 512 --depth 8 --joint 0.9 --raster 0.4 --shifts 2 --neighbours 3 --valid-too --dropout 0.2"
t="--targets W/restore/targets.npy --validate-every 500 --save-every 100000"
$m train --out W/branch1 $o $t --start W/trunk --rate 0.0008 --seed 1 --target-share 0.5 --tossed 0.3 --seconds 220
$m train --out W/branch2 $o $t --start W/trunk --rate 0.0008 --seed 2 --target-share 0.9 --seconds 220
$m train --out W/branch3 $o $t --start W/branch1 --rate 0.0003 --seed 3 --target-share 0.15 --tossed 0.1 --seconds 150
$m mix --out W/mix $o --of W/branch1 W/branch3
$m score --out W/mix $o --question-rows 2000 --until END
# 3. Other means, which were no better (mix/of_three.json, mix/of_two_to_one.json, mix_again).
$m mix --out W/of_three $o --of W/trunk W/branch1 W/branch3
$m mix --out W/of_two_to_one $o --of W/branch1 W/branch1 W/branch3
$m train --out W/branch4 $o $t --joint 0.98 --raster 0.5 --no-trial --start W/mix --rate 0.0004 --seed 4 --target-share 0.35 --tossed 0.3 --seconds 72
$m mix --out W/mix_again $o --of W/mix W/branch4
$m score --out W/mix_again $o --until END
# 4. On a CPU, from the weights of 8 bits that came home: the last layer anew, and its score.
$m head --out W/head $o --of W/mix
$m score --out W/head --tokens patches --scans 1
