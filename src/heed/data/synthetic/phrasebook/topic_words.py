"""The word lists of the patterns, by slot."""

from heed.data.synthetic.phrasebook import lexicon
from heed.data.synthetic.phrasebook.korean_inflection import final_consonant
from heed.data.synthetic.phrasebook.patterns import Entry, Tables

# number | slots | Korean and English, separated by commas; an underscore joins the words of one side
_TABLE = """
count | dish | 햄버거 hamburger, 피자 pizza, 샐러드 salad, 스테이크 steak, 핫도그 hot_dog, 샌드위치 sandwich
mass | dish | 비빔밥 bibimbap, 불고기 bulgogi, 김치찌개 kimchi_stew, 된장찌개 soybean_paste_stew, 김밥 gimbap
mass | dish | 떡볶이 tteokbokki, 삼겹살 pork_belly, 치킨 fried_chicken, 파스타 pasta, 칼국수 noodle_soup, 김치 kimchi, 라면 ramen
mass | dish | 삼계탕 ginseng_chicken_soup, 볶음밥 fried_rice, 초밥 sushi, 짜장면 jajangmyeon, 불닭 spicy_chicken, 밥 rice, 빵 bread
mass | dish | 한국_음식 Korean_food, 중국_음식 Chinese_food, 일본_음식 Japanese_food, 매운_음식 spicy_food
plural | dish | 냉면 cold_noodles, 갈비 ribs, 채소 vegetables, 만두 dumplings, 국수 noodles
mass | dish meat | 고기 meat, 생선 fish, 소고기 beef, 돼지고기 pork, 닭고기 chicken, 해산물 seafood
mass | drink hot | 커피 coffee, 차 tea, 녹차 green_tea
mass | drink cool | 물 water, 맥주 beer, 소주 soju, 와인 wine, 콜라 cola, 주스 juice, 우유 milk
mass | drink | 오렌지_주스 orange_juice, 찬물 cold_water, 따뜻한_물 warm_water, 차가운_물 cold_water, 아이스커피 iced_coffee, 막걸리 makgeolli
count | coffee | 아메리카노 americano, 카페라떼 latte, 카푸치노 cappuccino, 에스프레소 espresso, 아이스_아메리카노 iced_americano
count | table | 영수증 receipt, 숟가락 spoon, 포크 fork, 컵 cup, 접시 plate, 냅킨 napkin, 빨대 straw, 물티슈 wet_wipe
plural | table | 젓가락 chopsticks
mass | table | 소금 salt, 설탕 sugar, 얼음 ice, 김치 kimchi, 소스 sauce
the | bill | 계산서 check, 메뉴판 menu, 메뉴 menu
count | goods fruit | 사과 apple, 바나나 banana, 오렌지 orange, 수박 watermelon, 귤 tangerine, 복숭아 peach
plural | goods fruit | 딸기 strawberries, 포도 grapes
count | goods wear | 가방 bag, 모자 hat, 치마 skirt, 셔츠 shirt, 티셔츠 T-shirt, 원피스 dress, 코트 coat, 재킷 jacket, 스웨터 sweater, 반지 ring
count | goods wear | 목걸이 necklace
plural | goods wear | 신발 shoes, 운동화 sneakers, 바지 pants, 청바지 jeans, 옷 clothes, 양말 socks, 장갑 gloves, 안경 glasses, 구두 dress_shoes
count | goods | 우산 umbrella, 책 book, 지갑 wallet, 휴대폰 cell_phone, 핸드폰 cell_phone, 컴퓨터 computer, 노트북 laptop, 카메라 camera
count | goods | 선물 gift, 기념품 souvenir, 꽃 flower, 의자 chair, 침대 bed, 자전거 bicycle, 인형 doll, 장난감 toy, 펜 pen, 엽서 postcard, 지도 map
plural | goods | 화장품 cosmetics, 이어폰 earphones
mass | goods | 향수 perfume, 약 medicine, 우유 milk, 물 water, 빵 bread, 비누 soap, 치약 toothpaste
count | need | 티켓 ticket, 표 ticket, 지도 map, 수건 towel, 담요 blanket, 베개 pillow, 열쇠 key, 봉투 bag, 우산 umbrella, 충전기 charger
count | need | 택시 taxi, 의사 doctor, 통역사 interpreter, 구급차 ambulance, 예약 reservation, 방 room
mass | need | 휴지 toilet_paper, 약 medicine, 도움 help, 시간 time, 돈 money, 물 water, 휴식 rest
count | lost | 여권 passport, 지갑 wallet, 가방 bag, 휴대폰 cell_phone, 핸드폰 cell_phone, 열쇠 key, 카메라 camera, 우산 umbrella, 표 ticket
count | lost | 신용카드 credit_card, 노트북 laptop, 모자 hat
count | place spot | 화장실 bathroom, 지하철역 subway_station, 역 station, 기차역 train_station, 버스_정류장 bus_stop, 공항 airport, 호텔 hotel
count | place spot | 은행 bank, 병원 hospital, 약국 pharmacy, 편의점 convenience_store, 우체국 post_office, 경찰서 police_station, 대사관 embassy
count | place spot | 백화점 department_store, 식당 restaurant, 카페 cafe, 대학교 university, 도서관 library, 박물관 museum, 미술관 art_museum
count | place spot | 시장 market, 공원 park, 극장 theater, 영화관 movie_theater, 주차장 parking_lot, 출구 exit, 입구 entrance, 매표소 ticket_office
count | place spot | 엘리베이터 elevator, 슈퍼마켓 supermarket, 마트 supermarket, 서점 bookstore, 빵집 bakery, 미용실 hair_salon, 수영장 swimming_pool
count | place spot | 터미널 terminal, 버스_터미널 bus_terminal, 관광_안내소 tourist_information_center, 교회 church, 해변 beach, 동물원 zoo
count | place spot | 택시_승강장 taxi_stand, 환전소 currency_exchange, 안내_데스크 information_desk, 현금_인출기 ATM, 체육관 gym, 가게 store, 다리 bridge
name | city | 서울 Seoul, 부산 Busan, 제주도 Jeju_Island, 대구 Daegu, 인천 Incheon, 경주 Gyeongju, 대전 Daejeon, 광주 Gwangju, 강릉 Gangneung
name | city area | 명동 Myeongdong, 강남 Gangnam, 홍대 Hongdae, 인사동 Insadong, 이태원 Itaewon, 동대문 Dongdaemun, 남산 Namsan
name | station | 서울역 Seoul_Station, 강남역 Gangnam_Station, 시청역 City_Hall_Station, 홍대입구역 Hongik_University_Station, 부산역 Busan_Station
name | station | 인천공항 Incheon_Airport, 김포공항 Gimpo_Airport, 명동 Myeongdong, 시청 City_Hall, 경복궁 Gyeongbokgung_Palace, 남대문시장 Namdaemun_Market
name | city | 도쿄 Tokyo, 뉴욕 New_York, 런던 London, 파리 Paris, 베이징 Beijing, 베를린 Berlin, 로마 Rome, 시드니 Sydney
name | country | 한국 Korea, 미국 America, 일본 Japan, 중국 China, 영국 England, 프랑스 France, 독일 Germany, 캐나다 Canada, 호주 Australia
name | country | 인도 India, 베트남 Vietnam, 태국 Thailand, 러시아 Russia, 스페인 Spain, 이탈리아 Italy, 브라질 Brazil, 멕시코 Mexico
name | national | 한국 Korean, 미국 American, 일본 Japanese, 중국 Chinese, 영국 British, 프랑스 French, 독일 German, 캐나다 Canadian
name | national | 호주 Australian, 인도 Indian, 베트남 Vietnamese, 태국 Thai, 러시아 Russian, 스페인 Spanish, 이탈리아 Italian
name | language | 한국어 Korean, 영어 English, 일본어 Japanese, 중국어 Chinese, 프랑스어 French, 독일어 German, 스페인어 Spanish, 한국말 Korean
count | job | 회사원 office_worker, 대학생 college_student, 선생님 teacher, 주부 homemaker, 프로그래머 programmer, 개발자 developer
count | job | 디자이너 designer, 경찰관 police_officer, 소방관 firefighter, 공무원 civil_servant, 군인 soldier, 연구원 researcher, 대학원생 graduate_student
count | job | 외국인 foreigner, 관광객 tourist, 고등학생 high_school_student, 의사 doctor, 학생 student, 간호사 nurse, 가수 singer, 배우 actor
count | job | 변호사 lawyer, 교수 professor, 요리사 cook, 작가 writer, 기자 reporter, 화가 artist, 엔지니어 engineer
count | family | 어머니 mother, 아버지 father, 엄마 mom, 아빠 dad, 형 older_brother, 오빠 older_brother, 누나 older_sister, 언니 older_sister
count | family | 할머니 grandmother, 할아버지 grandfather, 남편 husband, 아내 wife, 아들 son, 딸 daughter, 남자_친구 boyfriend
count | family | 여자_친구 girlfriend, 친구 friend, 선생님 teacher, 삼촌 uncle, 이모 aunt
plural | parents | 부모님 parents, 친구들 friends
count | owned | 형 older_brother, 오빠 older_brother, 누나 older_sister, 언니 older_sister, 남동생 younger_brother, 여동생 younger_sister
count | owned | 남자_친구 boyfriend, 여자_친구 girlfriend, 아들 son, 딸 daughter, 고양이 cat, 강아지 puppy, 자동차 car, 질문 question
name | hobby | 독서 reading, 요리 cooking, 여행 traveling, 등산 hiking, 수영 swimming, 운동 exercising, 음악_감상 listening_to_music
name | hobby | 영화_감상 watching_movies, 게임 playing_games, 사진_촬영 taking_pictures, 그림_그리기 drawing, 낚시 fishing, 쇼핑 shopping
name | hobby | 춤추기 dancing, 산책 taking_walks, 피아노_연주 playing_the_piano, 캠핑 camping, 노래_부르기 singing
name | hobby | 음악_듣기 listening_to_music, 영화_보기 watching_movies, 책_읽기 reading_books, 사진_찍기 taking_pictures, 게임하기 playing_games
name | hobby | 요리하기 cooking, 여행하기 traveling, 축구 soccer, 야구 baseball, 춤 dancing
name | sport | 축구 soccer, 야구 baseball, 농구 basketball, 테니스 tennis, 배구 volleyball, 골프 golf, 배드민턴 badminton, 탁구 table_tennis
name | liked | 음악 music, 영화 movies, 케이팝 K-pop, 드라마 dramas, 여행 traveling, 고양이 cats, 강아지 puppies, 동물 animals
name | liked | 축구 soccer, 야구 baseball, 농구 basketball, 책 books, 그림 pictures, 노래 songs, 봄 spring, 여름 summer, 가을 fall, 겨울 winter
name | liked | 바다 the_sea, 산 mountains, 초콜릿 chocolate, 아이스크림 ice_cream, 케이크 cakes, 과일 fruit, 커피 coffee, 김치 kimchi
name | liked | 피자 pizza, 치킨 fried_chicken, 비빔밥 bibimbap, 떡볶이 tteokbokki, 한국_음식 Korean_food, 매운_음식 spicy_food, 꽃 flowers, 사진 photos
name | liked | 불고기 bulgogi, 김밥 gimbap, 라면 ramen, 초밥 sushi, 햄버거 hamburgers, 고기 meat, 생선 fish, 맥주 beer, 차 tea
name | liked | 우유 milk, 사과 apples, 바나나 bananas, 딸기 strawberries, 수박 watermelon, 개 dogs, 한국 Korea, 영어 English, 춤 dancing
name | weekday | 월요일 Monday, 화요일 Tuesday, 수요일 Wednesday, 목요일 Thursday, 금요일 Friday, 토요일 Saturday, 일요일 Sunday
name | when | 오늘 today, 내일 tomorrow, 모레 the_day_after_tomorrow, 이번_주말에 this_weekend, 다음_주에 next_week, 오늘_밤에 tonight
name | when | 오늘_저녁에 this_evening, 내일_아침에 tomorrow_morning, 내일_저녁에 tomorrow_evening, 나중에 later, 다음_달에 next_month, 주말에 on_the_weekend
name | past | 어제 yesterday, 지난주에 last_week, 지난주말에 last_weekend, 어젯밤에 last_night, 작년에 last_year, 오늘_아침에 this_morning
name | past | 지난달에 last_month, 그저께 the_day_before_yesterday
name | now | 지금 now, 요즘 these_days, 요새 these_days
name | goal | 학교 to_school, 회사 to_work, 집 home, 거기 there, 밖 outside, 해외 abroad, 고향 to_my_hometown, 친구_집 to_a_friend's_house
name | cause | 일 work, 시험 the_exam, 비 the_rain, 눈 the_snow, 감기 a_cold, 돈 money, 날씨 the_weather, 회의 the_meeting, 숙제 homework
name | cause | 면접 the_interview, 교통 traffic, 회사 the_company, 발표 the_presentation, 여행 the_trip, 사고 an_accident, 너 you, 가족 my_family
name | since | 바빠서 I_am_busy, 피곤해서 I_am_tired, 아파서 I_am_sick, 비가_와서 it_is_raining, 눈이_와서 it_is_snowing, 졸려서 I_am_sleepy
name | since | 시간이_없어서 I_have_no_time, 돈이_없어서 I_have_no_money, 추워서 it_is_cold, 더워서 it_is_hot, 감기에_걸려서 I_have_a_cold
name | cond | 비가_오면 it_rains, 눈이_오면 it_snows, 시간이_있으면 I_have_time, 돈이_있으면 I_have_money, 날씨가_좋으면 the_weather_is_nice
name | cond | 추우면 it_is_cold, 더우면 it_is_hot, 피곤하면 I_am_tired, 바쁘면 I_am_busy, 아프면 I_am_sick, 일이_끝나면 work_is_over
name | act | 공부 study, 운동 exercise, 요리 cook, 청소 clean, 빨래 do_the_laundry, 설거지 do_the_dishes, 쇼핑 go_shopping, 산책 take_a_walk, 일 work
name | act | 여행 travel, 수영 swim, 운전 drive, 노래 sing, 샤워 take_a_shower, 이사 move, 연습 practice, 등산 go_hiking, 낚시 go_fishing
name | act | 출근 go_to_work, 퇴근 get_off_work, 야근 work_overtime, 예약 make_a_reservation, 주문 order, 졸업 graduate
name | act | 준비 get_ready, 시작 start, 캠핑 go_camping, 외출 go_out, 데이트 go_on_a_date, 게임 play_games
name | skill | 노래 sing, 요리 cook, 수영 swim, 운전 drive, 공부 study, 축구 play_soccer, 농구 play_basketball, 야구 play_baseball, 게임 play_games, 일 work
count | shown | 영화 movie, 드라마 drama, 사진 photo, 경기 game, 그림 picture, 연극 play, 책 book, 영상 video
count | watched | 영화 movie, 드라마 drama, 경기 game, 연극 play
mass | watched | 텔레비전 television, 뉴스 the_news, 축구 soccer, 야구 baseball, 유튜브 YouTube
name | meal | 아침 breakfast, 점심 lunch, 저녁 dinner
name | vehicle | 버스 bus, 지하철 subway, 기차 train, 택시 taxi, 비행기 plane, 배 boat, 자동차 car
count | leaves | 버스 bus, 기차 train, 비행기 plane, 지하철 subway, 첫차 first_train, 막차 last_train, 배 boat, 공항버스 airport_bus
count | opens | 가게 store, 은행 bank, 식당 restaurant, 박물관 museum, 시장 market, 백화점 department_store, 카페 cafe, 도서관 library, 우체국 post_office
count | event | 영화 movie, 수업 class, 회의 meeting, 공연 show, 경기 game, 파티 party, 콘서트 concert, 시험 exam, 약속 appointment
count | event | 결혼식 wedding, 축제 festival, 연극 play
name | body | 머리 head, 목 throat, 허리 back, 다리 leg, 팔 arm, 발 foot, 무릎 knee, 손 hand, 어깨 shoulder, 귀 ear, 배 stomach
name | illness | 감기 a_cold, 두통 a_headache, 열 a_fever, 기침 a_cough, 알레르기 allergies, 복통 a_stomachache, 몸살 body_aches
count | spot | 학교 school, 회사 company
name | parent | 엄마 Mom, 아빠 Dad, 할머니 Grandma, 할아버지 Grandpa
name | inside | 부엌 in_the_kitchen, 거실 in_the_living_room, 방 in_the_room, 집 at_home, 학교 at_school, 사무실 at_the_office
name | part | 아침에 in_the_morning, 오전에 in_the_morning, 오후에 in_the_afternoon, 저녁에 in_the_evening, 밤에 at_night
name | side | 왼쪽 left, 오른쪽 right
name | color | 빨간색 red, 파란색 blue, 노란색 yellow, 검은색 black, 흰색 white, 초록색 green, 분홍색 pink, 회색 gray, 갈색 brown
name | school | 수학 math, 역사 history, 과학 science, 음악 music, 미술 art, 경제학 economics, 컴퓨터_공학 computer_science, 영어 English
name | school | 한국어 Korean, 의학 medicine, 법학 law
count | room | 싱글룸 single_room, 더블룸 double_room, 트윈룸 twin_room, 조용한_방 quiet_room, 큰_방 big_room, 금연실 non-smoking_room
count | broken | 에어컨 air_conditioner, 텔레비전 television, 컴퓨터 computer, 엘리베이터 elevator, 휴대폰 cell_phone, 샤워기 shower, 히터 heater
count | broken | 문 door, 냉장고 refrigerator, 노트북 laptop, 세탁기 washing_machine, 인터넷 Internet
name | so | 너무 so, 정말 really, 진짜 really, 아주 very, 매우 very, 참 really
name | very | 너무 too, 정말 really, 진짜 really, 아주 very, 매우 very, 조금 a_little, 좀 a_little
name | cmp | 싼 cheaper, 큰 bigger, 작은 smaller, 좋은 better, 예쁜 prettier, 가벼운 lighter, 긴 longer, 짧은 shorter
count | papers | 여권 passport, 신분증 ID_card, 표 ticket, 운전면허증 driver's_license, 탑승권 boarding_pass
count | animal | 고양이 cat, 강아지 puppy, 개 dog, 새 bird, 말 horse
count | volume | 책 book, 소설 novel, 잡지 magazine, 공책 notebook
count | kin | 형 older_brother, 오빠 older_brother, 누나 older_sister, 언니 older_sister, 남동생 younger_brother, 여동생 younger_sister
count | kin | 아들 son, 딸 daughter, 친구 friend, 학생 student, 동생 younger_sibling
count | fee | 입장료 admission_fee, 택시비 taxi_fare, 버스비 bus_fare, 월세 monthly_rent, 배송비 shipping_fee, 가격 price, 방값 room_rate
count | fee | 티켓 ticket, 표 ticket, 교통비 transportation_fee, 수업료 tuition
name | may | 여기_앉아도 sit_here, 사진_찍어도 take_a_picture, 사진을_찍어도 take_a_picture, 들어가도 come_in, 창문을_열어도 open_the_window
name | may | 문을_닫아도 close_the_door, 이거_먹어도 eat_this, 이거_써도 use_this, 이것을_사용해도 use_this, 질문해도 ask_a_question
name | may | 하나_물어봐도 ask_you_something, 뭐_좀_물어봐도 ask_you_something, 화장실에_가도 go_to_the_bathroom, 화장실_가도 go_to_the_bathroom
name | may | 집에_가도 go_home, 지금_가도 go_now, 먼저_가도 go_first, 같이_가도 go_with_you, 여기_주차해도 park_here, 전화해도 call_you, 내일_와도 come_tomorrow
name | may | 텔레비전을_켜도 turn_on_the_television, 에어컨을_켜도 turn_on_the_air_conditioner, 불을_꺼도 turn_off_the_light, 이거_가져가도 take_this
name | ask | 불을_켜 turn_on_the_light, 불을_꺼 turn_off_the_light
name | ask | 에어컨을_켜 turn_on_the_air_conditioner, 에어컨을_꺼 turn_off_the_air_conditioner, 텔레비전을_켜 turn_on_the_television
name | ask | 텔레비전을_꺼 turn_off_the_television, 소리를_줄여 turn_down_the_volume, 이름을_써 write_your_name, 여기에_사인해 sign_here
name | ask | 주소를_알려 tell_me_the_address, 시간을_알려 tell_me_the_time, 이름을_알려 tell_me_your_name, 가격을_알려 tell_me_the_price
name | ask | 사진을_보내 send_me_a_photo, 사진을_보여 show_me_a_photo, 한국어를_가르쳐 teach_me_Korean
name | ask | 영어를_가르쳐 teach_me_English, 이거_고쳐 fix_this, 이거_번역해 translate_this, 다시_해 do_it_again, 내일_와 come_tomorrow, 빨리_와 come_quickly
name | ask | 확인해 check_it, 설명해 explain_it, 다시_설명해 explain_it_again, 저를_기다려 wait_for_me, 짐을_옮겨 carry_the_luggage, 이거_포장해 wrap_this
name | do | 빨래를_하 do_the_laundry, 설거지를_하 do_the_dishes, 공부를_하 study, 운동을_하 exercise, 요리를_하 cook
name | do | 일을_하 work, 게임을_하 play_games, 노래를_하 sing, 산책을_하 take_a_walk, 샤워를_하 take_a_shower, 쇼핑을_하 go_shopping, 여행을_하 travel
name | may | 카드로_계산해도 pay_by_card
name | play | 피아노 the_piano, 기타 the_guitar, 드럼 the_drums
name | doing | 요리하 cooking, 여행하 traveling, 노래하 singing, 춤추 dancing, 수영하 swimming, 운동하 exercising, 책을_읽 reading_books
name | doing | 영화를_보 watching_movies, 음악을_듣 listening_to_music, 사진을_찍 taking_pictures, 그림을_그리 drawing, 게임하 playing_games
name | holiday | 크리스마스 Christmas, 추석 Chuseok, 설날 Lunar_New_Year, 어린이날 Children's_Day, 한글날 Hangul_Day, 밸런타인데이 Valentine's_Day
count | own | 휴가 vacation, 방학 vacation, 결혼기념일 wedding_anniversary, 졸업식 graduation, 면접 interview
name | season | 봄 spring, 여름 summer, 가을 fall, 겨울 winter
name | fav | 음식 food, 색 color, 색깔 color, 영화 movie, 노래 song, 가수 singer, 운동 sport, 계절 season, 음악 music, 책 book, 과일 fruit
name | fav | 배우 actor, 드라마 drama, 동물 animal
"""
_STEMS = """
feel | 배고프 hungry, 피곤하 tired, 졸리 sleepy, 심심하 bored, 행복하 happy, 슬프 sad, 바쁘 busy, 외롭,ㅂ lonely, 아프 sick, 배부르,르 full
feel | 목마르,르 thirsty, 괜찮 okay, 건강하 healthy, 우울하 depressed, 기쁘 glad
air | 춥,ㅂ cold, 덥,ㅂ hot, 따뜻하 warm, 시원하 cool, 맑 clear, 흐리 cloudy, 습하 humid, 쌀쌀하 chilly
taste | 맵,ㅂ spicy, 짜 salty, 달 sweet, 싱겁,ㅂ bland, 뜨겁,ㅂ hot, 차갑,ㅂ cold, 시 sour, 쓰 bitter
nice | 예쁘 pretty, 멋있 cool, 귀엽,ㅂ cute, 좋 good, 아름답,ㅂ beautiful, 깨끗하 clean
look | 크 big, 작 small, 비싸 expensive, 싸 cheap, 무겁,ㅂ heavy, 가볍,ㅂ light
look | 길 long, 짧 short, 더럽,ㅂ dirty
opinion | 재미있 fun, 어렵,ㅂ difficult, 쉽,ㅂ easy, 이상하 strange, 중요하 important, 위험하 dangerous, 재미없 boring
opinion | 편하 comfortable, 불편하 uncomfortable, 나쁘 bad, 간단하 simple, 복잡하 complicated, 무섭,ㅂ scary, 완벽하 perfect
far | 멀 far, 가깝,ㅂ close, 조용하 quiet, 유명하 famous, 복잡하 crowded, 시끄럽,ㅂ noisy
"""


def _entry(cell: str, number: str) -> Entry:
    source, target = cell.split()
    return Entry(tuple(source.split("_")), tuple(target.split("_")), "count" if number == "the" else number)


def _named() -> list[Entry]:
    """The people of the phrasebook, by name; and names that are common among those who introduce themselves."""
    return [Entry((one.name,), one.english, "name") for one in lexicon.FRIENDS]


_SURNAMES = "김 Kim 이 Lee 박 Park 최 Choi 정 Jung 강 Kang 조 Cho 윤 Yoon"
_GIVEN = """
지민 Jimin 민지 Minji 지우 Jiwoo 현우 Hyunwoo 서준 Seojun 하은 Haeun 지수 Jisoo 수민 Sumin 영수 Youngsoo 지영 Jiyoung
"""


def _new_names() -> list[Entry]:
    """Names with which people introduce themselves: 지민, 김민수."""
    given = [*lexicon.word_pairs(_GIVEN), *[(one.name, *one.english) for one in lexicon.FRIENDS]]
    whole = [((family + ko,), (surname, en)) for family, surname in lexicon.word_pairs(_SURNAMES) for ko, en in given]
    alone = [((ko,), (en,)) for ko, en in lexicon.word_pairs(_GIVEN)] * 8
    return [Entry(source, target, "name") for source, target in whole + alone]


def _called(formal: bool) -> list[Entry]:
    """Names as one calls someone: 민수야, 민수 씨."""
    if formal:
        return [Entry((one.name, "씨"), one.english, "name") for one in lexicon.FRIENDS]
    return [
        Entry((one.name + ("아" if final_consonant(one.name) else "야"),), one.english, "name")
        for one in lexicon.FRIENDS
    ]


def _slots() -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    for line in _TABLE.strip().splitlines():
        number, slots, cells = (part.strip() for part in line.split("|"))
        for slot in slots.split():
            found.setdefault(slot, []).extend(_entry(cell, number) for cell in cells.split(","))
    return found


def _stems() -> dict[str, list[tuple[str, str]]]:
    """Stems with their English, by slot: they are written into the pattern, since they take its ending."""
    found: dict[str, list[tuple[str, str]]] = {}
    for line in _STEMS.strip().splitlines():
        slot, cells = (part.strip() for part in line.split("|"))
        for cell in cells.split(", "):
            source, target = cell.split(" ")
            found.setdefault(slot, []).append((source, target.replace("_", " ")))
    return found


TABLES = Tables(
    _slots() | {"name": _named(), "newname": _new_names(), "friend": _called(False), "guest": _called(True)}, _stems()
)
