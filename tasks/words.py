"""Common English words for drawing tasks: lower case, ASCII, distinct, four to nine letters, in a fixed order."""

from __future__ import annotations

_TEXT = """
able acid actor admit adult agent alarm album alert alley amber ample anchor angle animal ankle answer apple april
apron arch arena armor arrow artist aspen atlas attic august autumn avenue award bacon badge baker balcony ballad
bamboo banana banner barley barn barrel basil basket beach beacon bean beard beast beaver bell bench berry bicycle
birch bird biscuit blade blanket blossom board boat bonus border bottle boulder bowl branch brass bread breeze brick
bridge broom brother bubble bucket buffalo bundle butter button cabin cable cactus camel camera candle canoe canvas
canyon captain carbon cargo carpet carrot castle cattle cedar cellar cement center cereal chain chair chalk chapel
chart cheese cherry chest chicken chimney church cinema circle circus citrus clay clever cliff clock cloud clover
coach coast cobalt cocoa coconut coffee collar comet comma compass copper coral corner cotton couch cousin crab cradle
crane crater cream cricket crown crystal cube curtain cushion cycle dagger dairy daisy dance danger deck deer delta
denim desert diamond dinner diver doctor dollar dolphin donkey door dragon drawer dream drum eagle early earth easel
echo eight elbow elder elephant elm ember emerald engine entry envoy estate evening fabric falcon family farmer
feather fence ferry fiddle field finger fire flag flame flask flavor fleet flint flock flower flute forest fossil
fountain fox frame freedom frost fruit funnel gallery garden garlic garnet gate ghost giant ginger giraffe glacier
glass glove goat gold goose grain granite grape grass gravel green grocer guitar hammer hammock harbor harp harvest
hazel heart hedge helmet herb hero heron hill hockey holiday honey hood horse hotel hour house humble hunter husky
icon igloo inch indigo insect iris iron island ivory jacket jaguar jasmine jelly jewel judge juice jungle junior kayak
kettle kidney kingdom kitchen kite kitten knight ladder lagoon lake lamp lantern laptop laundry lawn leader leaf
leather lemon lentil letter lily lime linen lion lizard lobster locket lotus lumber lunch magnet mango mantle maple
marble market marsh meadow medal melon mercury metal meteor mineral mint mirror mitten monkey month moon mosaic moss
mother motor mountain mouse muffin museum music mustard napkin nature nectar needle nephew nickel night noodle north
novel number nurse oasis oboe ocean olive onion opal opera orange orbit orchard orchid organ otter oven owl oyster
paddle palace panda panel panther papaya paper parcel parrot pasta pastry peach peanut pear pearl pebble pelican
pencil pepper piano picnic pigeon pillow pilot pine pirate planet plant plaster plate plaza plum pocket poem poet
polar pony poplar portal potato pottery prairie prism puddle pulse pumpkin puppet purple puzzle pyramid quail quartz
queen quilt quiver rabbit radar radio rain ranch raven recipe reef ribbon ridge river robin robot rocket rope rose
ruby ruler saddle sail salad salmon salt sand sandal sapphire satin sauce scale scarf school scooter season secret
seed shadow shark sheep shell shield ship shirt shovel shrimp signal silk silver singer sister sketch sleeve slipper
smoke snail snow soap soccer socket soldier spark sparrow spice spider spinach spiral sponge spoon spring spruce squid
stable stamp star statue steam steel stone storm stove straw stream street string sugar summer sunset swan sweater
syrup table tailor tango teacher temple tennis tent theater thistle thread throne thunder ticket tiger timber tissue
toast tomato tower train treasure tree trophy trout truck tulip tunnel turkey turnip turtle twig uncle unicorn valley
vanilla vault velvet vessel violet violin vision voyage wagon walnut water wave weather whale wheat wheel whistle
willow window winter wizard wolf wonder wooden yacht yarn yellow yogurt zebra zenith zipper
"""

WORDS: tuple[str, ...] = tuple(_TEXT.split())
